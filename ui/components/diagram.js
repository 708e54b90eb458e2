// Boxes and arrows: each box is a button that leads to the page where it happens.
const SVG = "http://www.w3.org/2000/svg"
const ARROW = "M2 9 H15 M10 4 L15 9 L10 14"

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const root = parentElement.querySelector(".diagram")
  if (!root || !data) return
  const drawn = JSON.stringify(data)
  if (root.dataset.drawn !== drawn || !root.firstChild) {
    draw(root, data)
    root.dataset.drawn = drawn
  }
  root.onclick = event => {
    const box = event.target.closest(".box")
    if (box) setTriggerValue("pressed", box.dataset.box)
  }
}

function draw(root, data) {
  root.setAttribute("aria-label", data.label)
  const flow = make("div", "flow" + (data.start ? " fork-in-two" : ""))
  if (data.start) {
    const start = make("div", "start")
    start.append(makeBox(data.start), line(ARROW, "arrow down"))
    flow.append(start, line("M0 50 H8 V22 H22 M0 50 H8 V78 H22", "fork", "0 0 26 100"))
  }
  const lanes = make("div", "lanes")
  for (const lane of data.lanes) lanes.append(makeLane(lane))
  flow.append(lanes)
  root.replaceChildren(flow)
  if (data.back) root.append(wayBack(data.back))
}

function makeLane(lane) {
  const list = make("ol", "lane" + (lane.color ? " coloured" : ""))
  if (lane.color) list.style.setProperty("--accent", lane.color)
  if (lane.label) list.setAttribute("aria-label", lane.label)
  lane.boxes.forEach((box, i) => {
    const item = make("li", "")
    item.append(makeBox(box))
    if (i + 1 < lane.boxes.length) item.append(line(ARROW, "arrow"))
    list.append(item)
  })
  if (!lane.label) return list
  const named = make("div", "named")
  const name = make("div", "name")
  name.textContent = lane.label
  name.setAttribute("aria-hidden", "true")
  named.append(name, list)
  return named
}

function makeBox(box) {
  const button = make("button", "box" + (box.lit ? " lit" : ""))
  button.type = "button"
  button.dataset.box = box.name
  button.title = box.leads
  button.setAttribute("aria-label", `${box.title}. ${box.leads}`)
  if (box.lit) button.setAttribute("aria-current", "step")
  const title = make("span", "title")
  title.textContent = box.title
  button.append(title)
  if (box.below) {
    const below = make("span", "below")
    below.textContent = box.below
    button.append(below)
  }
  return button
}

function wayBack(label) {
  const back = make("div", "back")
  const words = make("span", "label")
  words.textContent = `↻ ${label}`
  back.append(
    line("M9 27 V2 M4 7 L9 2 L14 7", "", "0 0 18 34"), make("span", "line"), words, make("span", "line"),
    line("M9 0 V27", "", "0 0 18 34"),
  )
  return back
}

function line(path, className, box = "0 0 18 18") {
  const svg = document.createElementNS(SVG, "svg")
  if (className) svg.setAttribute("class", className)
  svg.setAttribute("viewBox", box)
  svg.setAttribute("preserveAspectRatio", "none")
  svg.setAttribute("aria-hidden", "true")
  const drawn = document.createElementNS(SVG, "path")
  drawn.setAttribute("d", path)
  drawn.setAttribute("vector-effect", "non-scaling-stroke")
  svg.append(drawn)
  return svg
}

function make(name, className) {
  const made = document.createElement(name)
  if (className) made.className = className
  return made
}
