// Tokens as rows: one tab stop, arrows walk, Enter, Space or a click choose; the chosen row is kept in sight.
const tables = new WeakMap()

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const body = parentElement.querySelector("tbody")
  const box = parentElement.querySelector(".box")
  if (!body || !data) return
  let table = tables.get(parentElement)
  if (!table) {
    table = { drawn: "", selected: null, focus: 0, rows: [] }
    tables.set(parentElement, table)
  }
  table.box = box
  table.send = index => setTriggerValue("pressed", index)
  parentElement.querySelector("table").setAttribute("aria-label", data.label)
  for (const head of parentElement.querySelectorAll("th[data-word]")) {
    head.textContent = data.words[head.dataset.word]
    head.title = data.words[`${head.dataset.word}_help`] ?? ""
  }
  const wanted = JSON.stringify(data.rows)
  if (table.drawn !== wanted || table.rows[0]?.parentElement !== body) {
    table.rows = data.rows.map((row, i) => makeRow(row, i))
    body.replaceChildren(...table.rows)
    table.drawn = wanted
    table.selected = null
  }
  if (table.selected !== data.selected) {
    table.selected = table.focus = data.selected
    reveal(table)
  }
  mark(table)
  body.onclick = event => {
    const row = event.target.closest("tr")
    if (row) choose(table, Number(row.dataset.index))
  }
  body.onkeydown = event => walk(table, event)
  return () => tables.delete(parentElement)
}

function makeRow(row, i) {
  const line = document.createElement("tr")
  line.dataset.index = String(i)
  line.setAttribute("role", "row")
  line.append(cell(String(i), "number"), cell(String(row.id), "number"))
  const text = cell("", "text")
  const shown = document.createElement("bdi")
  shown.style.backgroundColor = row.color
  for (const [piece, isMark] of row.parts) {
    const span = document.createElement("span")
    if (isMark) span.className = "mark"
    span.textContent = piece
    shown.append(span)
  }
  text.append(shown)
  const bytes = cell(row.bytes, "bytes")
  bytes.title = row.bytes
  line.append(text, bytes, cell(String(row.start), "number"), cell(String(row.byte), "number"))
  return line
}

function cell(text, kind) {
  const box = document.createElement("td")
  box.setAttribute("role", "gridcell")
  box.className = kind
  box.textContent = text
  return box
}

function mark(table) {
  table.rows.forEach((row, i) => {
    row.setAttribute("aria-selected", String(i === table.selected))
    row.tabIndex = i === table.focus ? 0 : -1
  })
  table.box.dataset.selected = String(table.selected)
  table.box.dataset.count = String(table.rows.length)
}

function choose(table, index) {
  table.selected = table.focus = index
  mark(table)
  table.send(index)
}

// Scrolls the box, never the page.
function reveal(table) {
  const row = table.rows[table.selected]
  if (!row) return
  const head = table.box.querySelector("thead").offsetHeight
  const above = row.offsetTop - head < table.box.scrollTop
  const below = row.offsetTop + row.offsetHeight > table.box.scrollTop + table.box.clientHeight
  if (above || below) table.box.scrollTop = row.offsetTop - head - (table.box.clientHeight - head) / 2
}

function walk(table, event) {
  const row = event.target.closest("tr")
  if (!row || event.ctrlKey || event.metaKey || event.altKey) return
  const at = Number(row.dataset.index)
  const last = table.rows.length - 1
  const moves = {
    ArrowDown: Math.min(at + 1, last),
    ArrowUp: Math.max(at - 1, 0),
    PageDown: Math.min(at + 8, last),
    PageUp: Math.max(at - 8, 0),
    Home: 0,
    End: last,
  }
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault()
    choose(table, at)
  } else if (event.key in moves) {
    event.preventDefault()
    table.focus = moves[event.key]
    mark(table)
    table.rows[table.focus].focus()
  }
}
