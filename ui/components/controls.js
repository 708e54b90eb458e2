// Lists the controls that are on the page, by their keys and labels, for the teacher who chooses among them.
const KINDS = ["stSlider", "stSelectbox", "stMultiSelect", "stButtonGroup", "stCheckbox", "stNumberInput", "stTextInput",
  "stTextArea", "stRadio", "stFileUploader", "stPopover", "stButton", "stDownloadButton"]
const PREFIX = "st-key-"
const EVERYWHERE = /^(download|csv|save)_/ // what each figure gives away
const MOST = 60

function textOf(element) {
  const copy = element?.cloneNode(true)
  copy?.querySelectorAll("[data-testid=stIconMaterial], svg").forEach((icon) => icon.remove())
  return (copy?.textContent || "").trim()
}

function labelOf(element) {
  const text = textOf(element.querySelector("[data-testid=stWidgetLabel]")) || textOf(element.querySelector("button"))
  const named = element.querySelector("[aria-label]")?.getAttribute("aria-label")
  return (text || named || "").replace(/\s+/g, " ").slice(0, 80)
}

function keyOf(element) {
  return [...element.classList].find((name) => name.startsWith(PREFIX))?.slice(PREFIX.length)
}

function found() {
  const list = []
  for (const element of document.querySelectorAll(`[data-testid=stMain] [class*="${PREFIX}"]`)) {
    const key = keyOf(element)
    const isControl = KINDS.some((kind) => element.querySelector(`:scope > [data-testid=${kind}], :scope > * > [data-testid=${kind}]`)
      || element.matches(`[data-testid=${kind}]`))
    const inTry = element.closest('[class*="st-key-try_this"]')
    const label = labelOf(element)
    if (key && isControl && label && !EVERYWHERE.test(key) && !inTry && !list.some((one) => one.key === key)) list.push({ key, label })
  }
  return list.slice(0, MOST)
}

export default function ({ parentElement, setStateValue }) {
  const list = found()
  const said = JSON.stringify(list)
  if (parentElement.querySelector("span").dataset.said === said) return
  parentElement.querySelector("span").dataset.said = said
  setStateValue("controls", list)
}
