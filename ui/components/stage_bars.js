// The same tokens through several steps: a table of bars. One tab stop; arrows walk, Enter or a click press.
const tables = new WeakMap()

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const root = parentElement.querySelector(".bars")
  if (!root || !data) return
  const kept = tables.get(parentElement) ?? { focus: 0 }
  tables.set(parentElement, kept)
  const held = root.getRootNode().activeElement
  const hadFocus = held && root.contains(held)
  const scrolled = root.scrollLeft
  root.setAttribute("aria-label", data.label)
  root.style.setProperty("--neutral", data.neutral)

  const table = make("table", "")
  table.style.minWidth = `${7 + data.columns.length * data.narrow}rem`
  const widths = make("colgroup", "")
  widths.append(make("col", "tokens"), ...data.columns.map(() => make("col", "")))
  table.append(widths, head(data), body(data), foot(data))
  root.replaceChildren(table)
  root.scrollLeft = scrolled
  root.dataset.rows = String(data.rows.length)
  root.dataset.chosen = data.chosen === null ? "" : String(data.chosen)

  const tokens = [...root.querySelectorAll("button.token")]
  kept.focus = Math.min(kept.focus, Math.max(tokens.length - 1, 0))
  tokens.forEach((token, i) => { token.tabIndex = i === kept.focus ? 0 : -1 })
  if (hadFocus && tokens.length) tokens[kept.focus].focus({ preventScroll: true })

  root.onclick = event => {
    const row = event.target.closest("tr.press")
    if (!row || event.detail > 1) return // the second click of a double one would act on the next picture
    kept.focus = tokens.findIndex(token => row.contains(token))
    setTriggerValue("pressed", Number(row.dataset.id))
  }
  root.onkeydown = event => {
    const at = tokens.indexOf(event.target)
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: tokens.length - 1 }[event.key]
    if (at < 0 || to === undefined) return
    event.preventDefault()
    tokens[at].tabIndex = -1
    kept.focus = Math.max(0, Math.min(to, tokens.length - 1))
    tokens[kept.focus].tabIndex = 0
    tokens[kept.focus].focus()
  }
  return () => tables.delete(parentElement)
}

function head(data) {
  const part = make("thead", "")
  const row = make("tr", "")
  row.append(make("td", ""))
  data.columns.forEach((column, i) => {
    const cell = make("th", column.on ? "" : "off", column.title)
    cell.scope = "col"
    if (i === data.columns.length - 1) cell.classList.add("last")
    cell.append(make("span", "note", column.note || "\u00a0"))
    row.append(cell)
  })
  part.append(row)
  return part
}

function body(data) {
  const part = make("tbody", "")
  data.rows.forEach((token, i) => {
    const row = make("tr", "")
    const name = make("th", "")
    name.scope = "row"
    name.append(label(token, data, row))
    row.append(name)
    data.columns.forEach((column, j) => row.append(cell(column, i, data, token.rest, j)))
    part.append(row)
  })
  return part
}

function label(token, data, row) {
  if (token.rest) return make("div", "token rest", token.rest)
  const pressed = Boolean(data.verb)
  const box = make(pressed ? "button" : "div", "token")
  const text = document.createElement("bdi")
  for (const [piece, isMark] of token.parts) text.append(make("span", isMark ? "mark" : "", piece))
  box.append(text)
  box.title = `id ${token.id}`
  if (pressed) {
    box.type = "button"
    box.setAttribute("aria-label", `${data.verb} ${token.parts.map(part => part[0]).join("")}, id ${token.id}`)
    if (data.chooses) box.setAttribute("aria-pressed", String(token.id === data.chosen))
    row.className = "press"
    row.dataset.id = String(token.id)
  }
  if (token.id === data.chosen) row.classList.add("chosen")
  return box
}

function cell(column, i, data, isRest) {
  const { at, size, lost, text, state } = column.cells[i]
  const box = make("td", column.on ? state : `${state} off`)
  const struck = state === "removed" && text !== data.removed // a number that its step takes away
  const inner = make("div", struck ? "cell struck" : "cell")
  const track = make("div", "track")
  if (size > 0) track.append(piece("bar", at, size, isRest || column.logits ? data.neutral : data.color))
  if (lost > 0) track.append(piece("lost", at + size, lost))
  inner.append(track, make("span", "value", text))
  if (struck) inner.append(make("span", "said", data.removed))
  box.append(inner)
  return box
}

function foot(data) {
  const part = make("tfoot", "")
  data.facts.forEach((name, i) => {
    const row = make("tr", "")
    const title = make("th", "", name)
    title.scope = "row"
    row.append(title)
    data.columns.forEach((column, j) => {
      const box = make("td", column.on ? "" : "off", column.facts[i] ?? "")
      if (j === data.columns.length - 1) box.classList.add("last")
      row.append(box)
    })
    part.append(row)
  })
  return part
}

function piece(name, at, size, color) {
  const element = make("div", name)
  element.style.left = `${100 * at}%`
  element.style.width = `${100 * size}%`
  if (color) element.style.background = color
  return element
}

function make(kind, name, text) {
  const element = document.createElement(kind)
  if (name) element.className = name
  if (text !== undefined) element.textContent = text
  return element
}
