// All kept moments of a training at once: a slider, and everything that changes with it, drawn without the server.
const machines = new WeakMap()
const LEFT = 46 // px where a rem has 16; so are all sizes below that `large` multiplies
const SHORT = 11 // letters of a token beside a map
const PACE = 420 // ms a moment while it plays

export default function (component) {
  const { data, parentElement, setStateValue, setTriggerValue } = component
  const root = parentElement.querySelector(".moments")
  if (!root || !data) return
  let machine = machines.get(parentElement)
  if (!machine) {
    machine = { at: 0, rev: -1, timer: 0, later: 0, chips: [], drawn: "", focus: null }
    machines.set(parentElement, machine)
  }
  const before = machine.data?.steps[machine.at]
  machine.root = root
  machine.data = data
  machine.commit = () => setStateValue("selected", data.steps[machine.at])
  machine.send = (name, value) => setTriggerValue(name, value)
  machine.part = name => root.querySelector("." + name)
  if (machine.packed !== data.head.weights) {
    machine.packed = data.head.weights
    machine.weights = Uint8Array.from(atob(data.head.weights), c => c.charCodeAt(0))
  }
  if (data.rev !== machine.rev) {
    machine.rev = data.rev
    machine.at = nearest(data.steps, data.selected)
  } else if (before !== undefined && data.steps[machine.at] !== before) machine.at = nearest(data.steps, before)
  standing(machine)
  listen(machine)
  if (machine.observed !== root) {
    machine.observer?.disconnect()
    machine.observer = new ResizeObserver(() => show(machine))
    machine.observer.observe(root)
    machine.observed = root
  }
  show(machine)
  return () => {
    clearInterval(machine.timer)
    clearTimeout(machine.later)
    machine.observer.disconnect()
    machines.delete(parentElement)
  }
}

function nearest(steps, step) {
  let best = 0
  steps.forEach((s, i) => { if (Math.abs(s - step) < Math.abs(steps[best] - step)) best = i })
  return best
}

const place = step => Math.log1p(step)
const clip = (text, n) => text.length > n ? [...text].slice(0, n - 1).join("") + "…" : text

function make(kind, name, text) {
  const element = document.createElement(kind)
  if (name) element.className = name
  if (text !== undefined) element.textContent = text
  return element
}

function word(parts) {
  const box = make("bdi", "")
  for (const [piece, isMark] of parts) box.append(make("span", isMark ? "mark" : "", piece))
  return box
}

// ---- what stands still ----------------------------------------------------------------------------------------

function standing(machine) {
  const { data, part } = machine
  part("strip").setAttribute("aria-label", data.chips.label)
  const wanted = JSON.stringify([data.chips.groups, data.chips.greyed, data.words])
  if (machine.drawn !== wanted || !part("strip").firstChild) {
    machine.drawn = wanted
    drawChips(machine)
  }
  part("chipnote").textContent = data.chips.note
  part("barshead").replaceChildren(...data.heading.map(([text, isToken]) => make("bdi", isToken ? "token" : "", text)))
  part("track").setAttribute("aria-label", data.words.slider)
  for (const name of ["headtitle", "layerword", "headword"]) part(name).textContent = data.words[name]
  fillSelect(part("layer"), data.head.layers, data.head.layer)
  fillSelect(part("headno"), data.head.heads, data.head.head)
  part("samplehead").textContent = data.sampleHeading
  part("samplenote").textContent = data.sampleNote
}

function fillSelect(box, n, chosen) {
  if (box.options.length !== n)
    box.replaceChildren(...Array.from({ length: n }, (_, i) => Object.assign(make("option", "", String(i + 1)), { value: i })))
  box.value = String(chosen)
}

function drawChips(machine) {
  const { data, part } = machine
  const held = machine.root.getRootNode().activeElement
  const hadFocus = held && part("strip").contains(held)
  machine.chips = []
  const pieces = document.createDocumentFragment()
  for (const group of data.chips.groups) {
    const box = make("span", group.chips.length > 1 ? "group several" : "group")
    if (group.whole !== undefined) box.append(make("bdi", "whole", group.whole))
    for (const chip of group.chips) {
      const button = make("button", "chip")
      button.type = "button"
      button.dataset.index = String(chip.i)
      button.title = fill(data.words.title, chip)
      const text = word(chip.parts)
      text.className = "text"
      button.append(text, make("span", "value"))
      button.said = fill(data.words.token, { i: chip.i, text: chip.parts.map(p => p[0]).join("") || data.words.empty })
      machine.chips.push(button)
      box.append(button)
    }
    pieces.append(box)
  }
  part("strip").replaceChildren(pieces)
  if (machine.focus === null || machine.focus >= machine.chips.length) machine.focus = data.chips.selected
  if (hadFocus) machine.chips[machine.focus]?.focus()
}

// ---- what moves -----------------------------------------------------------------------------------------------

function show(machine) {
  const { data, part, root } = machine
  machine.large = enlarged()
  const at = machine.at
  const step = data.steps[at]
  part("now").textContent = fill(data.words.step, { step: step.toLocaleString("en-US") })
  part("note").textContent = data.notes[at]
  const play = part("play")
  play.textContent = machine.timer ? data.words.pause : data.words.play
  play.hidden = data.steps.length < 2
  chips(machine)
  plot(machine)
  slider(machine)
  bars(machine)
  attention(machine)
  sample(machine)
  for (const name of ["strip", "plot", "track", "bars", "board"]) part(name).dataset.step = String(step)
  if (data.samples[at]) part("sample").dataset.step = String(step)
  root.dataset.step = String(step)
  root.dataset.ready = String(data.samples.filter(Boolean).length)
  root.dataset.playing = String(Boolean(machine.timer))
}

function chips(machine) {
  const { data } = machine
  const n = data.chips.greyed
  const [values, colors] = [data.chips.values[machine.at], data.chips.colors[machine.at]]
  machine.chips.forEach((chip, i) => {
    const read = i >= n
    const value = read ? values[i - n] : ""
    chip.lastChild.textContent = value
    chip.classList.toggle("greyed", !read)
    chip.classList.toggle("solid", read)
    chip.classList.toggle("hidden", data.chips.hidden && i === data.chips.selected)
    chip.style.backgroundColor = read ? colors[i - n] : ""
    chip.style.color = read ? inkOn(colors[i - n]) : ""
    chip.setAttribute("aria-pressed", String(i === data.chips.selected))
    chip.setAttribute("aria-label", fill(read ? data.words.surprise : data.words.greyed, { token: chip.said, value }))
    chip.tabIndex = i === machine.focus ? 0 : -1
  })
  const wanted = `${machine.drawn.length}:${data.chips.selected}`
  if (machine.inSight === wanted) return
  machine.inSight = wanted // a long strip scrolls to the chosen token, once
  const [box, chip] = [machine.part("strip"), machine.chips[data.chips.selected]]
  if (chip && box.scrollHeight > box.clientHeight)
    box.scrollTop += chip.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2
}

// Black or white, whichever stands out more on an opaque colour (WCAG relative luminance).
function inkOn(hex) {
  const light = [1, 3, 5].map(at => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.179 ? "#000000" : "#FFFFFF"
}

function bars(machine) {
  const { data, part } = machine
  const truth = data.bars.truth
  const table = make("table", "")
  const widths = make("colgroup", "")
  for (const width of ["36%", "auto", "4.6em", truth ? "4.4em" : ""]) {
    if (!width) continue
    const col = make("col", "")
    col.style.width = width
    widths.append(col)
  }
  const head = make("thead", "")
  const titles = make("tr", "")
  for (const name of ["column_token", "column_probability", "column_model", truth ? "column_true" : ""]) {
    if (!name) continue
    const cell = make("th", name === "column_probability" ? "left" : "", data.words[name])
    cell.scope = "col"
    titles.append(cell)
  }
  head.append(titles)
  const body = make("tbody", "")
  for (const row of data.bars.rows[machine.at]) body.append(barRow(row, data, truth))
  table.append(widths, head, body)
  const box = part("bars")
  box.style.setProperty("--true", data.trueColor)
  box.replaceChildren(table)
}

function barRow(row, data, truth) {
  const line = make("tr", row.came ? "came" : "")
  const name = make("th", row.id === null ? "rest" : "")
  name.scope = "row"
  const look = row.line === undefined ? null : data.lines[row.line]
  if (row.id === null) name.textContent = data.bars.rest
  else {
    if (look) {
      const swatch = make("span", "swatch")
      swatch.style.borderTopColor = look.color
      swatch.style.borderTopStyle = look.dash.length ? "dashed" : "solid"
      name.append(swatch)
    }
    name.append(word(data.bars.names[row.id]))
    name.title = `id ${row.id}` + (row.came ? `, ${data.bars.cameNote}` : "")
    if (row.came) name.append(make("span", "", " ◀"))
  }
  const track = make("td", "")
  const model = make("div", "model")
  model.style.width = `${100 * row.p}%`
  model.style.background = row.id === null ? data.neutral : data.bars.color
  track.append(model)
  line.append(name, track, make("td", "number", row.text))
  if (truth) {
    const true_ = make("div", "true")
    true_.style.width = `${100 * row.true}%`
    true_.style.borderColor = data.trueColor
    if (row.true <= 0) true_.style.visibility = "hidden"
    track.append(true_)
    line.append(make("td", "number", row.trueText))
  }
  return line
}

function sample(machine) {
  const { data, part } = machine
  const pieces = data.samples[machine.at]
  const box = part("sample")
  box.classList.toggle("waiting", !pieces)
  if (pieces) box.replaceChildren(...pieces.map(([text, kind]) => make("span", kind, text)))
  else box.textContent = data.words.writing
}

// ---- curves ---------------------------------------------------------------------------------------------------

function layout(machine) {
  const width = machine.part("plot").clientWidth
  const large = machine.large
  const right = width - (width < 420 ? 92 : 118) * large
  const steps = machine.data.steps
  const curve = machine.data.curve.series.flatMap(line => line.x)
  const last = Math.max(place(Math.max(...steps, ...curve.slice(-1), 1)), 1)
  const left = LEFT * large
  return { width, left, right, x: step => left + place(step) / last * (right - left), last }
}

function plot(machine) {
  const { data, part, root } = machine
  const area = layout(machine)
  if (area.width < 120) return
  const height = part("plot").clientHeight
  const canvas = part("plot").querySelector("canvas")
  const pen = fit(canvas, area.width, height)
  const style = getComputedStyle(root)
  machine.ink = { text: style.color, page: style.getPropertyValue("--st-background-color").trim() || "white",
    family: style.fontFamily, mono: style.getPropertyValue("--st-code-font").trim() || "monospace" }
  canvas.setAttribute("aria-label", data.said[machine.at])
  canvas.setAttribute("role", "img") // not before it has a name
  const large = machine.large
  const losses = { top: 22 * large, bottom: (data.curve.series.length ? 140 : 22) * large }
  const probs = { top: losses.bottom + (data.curve.series.length ? 30 * large : 0), bottom: height - 40 * large }
  if (data.curve.series.length) drawLosses(machine, pen, area, losses)
  drawProbs(machine, pen, area, probs)
  drawSteps(machine, pen, area, probs)
  for (const box of [losses, probs]) if (box.bottom > box.top) cursor(machine, pen, area, box.top, box.bottom)
}

// How much larger the page's letters are than usual: a projector's are.
function enlarged() {
  return (parseFloat(getComputedStyle(document.documentElement).fontSize) || 16) / 16
}

function fit(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1
  canvas.width = Math.round(width * ratio)
  canvas.height = Math.round(height * ratio)
  canvas.style.width = width + "px"
  canvas.style.height = height + "px"
  const pen = canvas.getContext("2d")
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  return pen
}

function words(machine, pen, text, x, y, { align = "left", base = "middle", bold = false, mono = false, size = 13 } = {}) {
  pen.font = `${bold ? "600 " : ""}${size * machine.large}px ${mono ? machine.ink.mono : machine.ink.family}`
  pen.textAlign = align
  pen.textBaseline = base
  pen.fillStyle = machine.ink.text
  pen.fillText(text, x, y)
}

function frame(machine, pen, area, box, title, low, high, ticks) {
  const y = value => box.bottom - (value - low) / (high - low) * (box.bottom - box.top)
  words(machine, pen, title, 0, box.top - 12 * machine.large, { bold: true })
  pen.lineWidth = 1
  pen.setLineDash([])
  for (const tick of ticks) {
    const at = Math.round(y(tick)) + 0.5
    pen.strokeStyle = "rgba(128, 136, 145, 0.28)"
    pen.beginPath()
    pen.moveTo(area.left, at)
    pen.lineTo(area.right, at)
    pen.stroke()
    words(machine, pen, String(Number(tick.toPrecision(6))), area.left - 7 * machine.large, at, { align: "right" })
  }
  pen.strokeStyle = "rgba(128, 136, 145, 0.8)"
  pen.strokeRect(area.left + 0.5, box.top + 0.5, area.right - area.left, box.bottom - box.top)
  return y
}

function ticksOf(low, high, most) {
  const power = 10 ** Math.floor(Math.log10((high - low) / most))
  const size = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= (high - low) / most)
  const ticks = []
  for (let i = Math.ceil(low / size - 1e-9); i * size <= high + 1e-9; i++) ticks.push(i * size)
  return ticks
}

function drawLosses(machine, pen, area, box) {
  const { series, references, title } = machine.data.curve
  const all = [...series.flatMap(line => line.y), ...references.map(r => r.value)].filter(v => v !== null)
  let [low, high] = [Math.min(...all), Math.max(...all)]
  const pad = (high - low || 1) * 0.08
  ;[low, high] = [Math.max(0, low - pad), high + pad]
  const y = frame(machine, pen, area, box, title, low, high, ticksOf(low, high, 4))
  pen.save()
  pen.beginPath()
  pen.rect(area.left, box.top, area.right - area.left + 4, box.bottom - box.top)
  pen.clip()
  for (const line of series) stroke(pen, line, area, y, line.width)
  for (const mark of references) {
    pen.strokeStyle = mark.color
    pen.setLineDash(mark.dash)
    pen.lineWidth = 2
    pen.beginPath()
    pen.moveTo(area.left, y(mark.value))
    pen.lineTo(area.right, y(mark.value))
    pen.stroke()
  }
  pen.restore()
  const names = [
    ...series.map(line => ({ line, y: y(line.y.findLast(v => v !== null) ?? low) })),
    ...references.map(mark => ({ line: { name: mark.label }, y: y(mark.value) })),
  ]
  labels(machine, pen, area, box, names, false)
}

function stroke(pen, line, area, y, width) {
  pen.strokeStyle = line.color
  pen.lineWidth = width
  pen.lineJoin = "round"
  pen.setLineDash(line.dash)
  pen.beginPath()
  let down = false
  line.y.forEach((v, i) => {
    if (v === null) { down = false; return }
    if (down) pen.lineTo(area.x(line.x[i]), y(v))
    else pen.moveTo(area.x(line.x[i]), y(v))
    down = true
  })
  pen.stroke()
  pen.setLineDash([])
}

function drawProbs(machine, pen, area, box) {
  const { data } = machine
  const top = Math.max(0.02, ...data.lines.flatMap(line => [...line.values, line.true ?? 0]))
  const high = Math.min(1.04, top * 1.08)
  const y = frame(machine, pen, area, box, data.linesTitle, 0, high, ticksOf(0, high, 5))
  for (const line of data.lines) stroke(pen, { ...line, x: data.steps, y: line.values }, area, y, line.came ? 3.5 : 2.2)
  for (const line of data.lines) {
    pen.fillStyle = line.color
    line.values.forEach((v, i) => dot(pen, area.x(data.steps[i]), y(v), i === machine.at ? 5 : 2))
    if (line.true === undefined) continue
    pen.strokeStyle = data.trueColor // where the true distribution has it: a diamond on the right edge
    pen.lineWidth = 2
    pen.beginPath()
    const [x, h] = [area.right, y(line.true)]
    pen.moveTo(x - 5, h); pen.lineTo(x, h - 5); pen.lineTo(x + 5, h); pen.lineTo(x, h + 5); pen.closePath()
    pen.stroke()
  }
  const ends = data.lines.map(line => ({ line, y: y(line.values[line.values.length - 1]) }))
  labels(machine, pen, area, box, ends, true)
}

function dot(pen, x, y, r) {
  pen.beginPath()
  pen.arc(x, y, r, 0, 7)
  pen.fill()
}

// Names at the ends of lines, pushed apart where they would lie on each other.
function labels(machine, pen, area, box, ends, mono) {
  const gap = 16 * machine.large
  const sorted = [...ends].sort((a, b) => a.y - b.y)
  let floor = box.top + 6 * machine.large
  for (const end of sorted) { end.at = Math.max(end.y, floor); floor = end.at + gap }
  let over = Math.max(0, floor - gap - (box.bottom + 2))
  for (let i = sorted.length - 1; i >= 0 && over > 0; i--) {
    const next = i + 1 < sorted.length ? sorted[i + 1].at - gap : box.bottom + 2
    sorted[i].at = Math.min(sorted[i].at, next)
  }
  for (const { line, y, at } of sorted) {
    const x = area.right + 9
    pen.strokeStyle = line.color ?? "rgba(128, 136, 145, 0.8)"
    pen.lineWidth = 1
    pen.setLineDash([])
    pen.beginPath()
    pen.moveTo(area.right + 2, y)
    pen.lineTo(x, at)
    pen.stroke()
    if (line.color) {
      pen.lineWidth = 3
      pen.setLineDash(line.dash)
      pen.beginPath()
      pen.moveTo(x, at)
      pen.lineTo(x + 14, at)
      pen.stroke()
      pen.setLineDash([])
    }
    const from = x + (line.color ? 18 : 3)
    const letters = Math.max(4, Math.floor((area.width - from) / ((mono ? 7.9 : 6.3) * machine.large)))
    words(machine, pen, clip(line.name, letters), from, at, { mono, bold: line.came, size: 12.5 })
  }
}

function drawSteps(machine, pen, area, box) {
  const last = Math.round(Math.expm1(area.last))
  const ticks = [0, 1, 10, 100, 1000, 10000, 100000].filter(t => t < last)
  ticks.push(last)
  let edge = Infinity
  for (const tick of ticks.reverse()) {
    const x = area.x(tick)
    const text = tick.toLocaleString("en-US")
    pen.font = `${13 * machine.large}px ${machine.ink.family}`
    const half = pen.measureText(text).width / 2
    if (x + half > edge - 8) continue
    edge = x - half
    pen.strokeStyle = "rgba(128, 136, 145, 0.8)"
    pen.lineWidth = 1
    pen.beginPath()
    pen.moveTo(Math.round(x) + 0.5, box.bottom)
    pen.lineTo(Math.round(x) + 0.5, box.bottom + 4)
    pen.stroke()
    words(machine, pen, text, x, box.bottom + 7 * machine.large, { align: "center", base: "top" })
  }
  words(machine, pen, machine.data.words.axis, (area.left + area.right) / 2, box.bottom + 24 * machine.large, { align: "center", base: "top" })
}

function cursor(machine, pen, area, top, bottom) {
  const x = Math.round(area.x(machine.data.steps[machine.at])) + 0.5
  pen.strokeStyle = machine.ink.text
  pen.lineWidth = 1.5
  pen.setLineDash([4, 3])
  pen.beginPath()
  pen.moveTo(x, top)
  pen.lineTo(x, bottom)
  pen.stroke()
  pen.setLineDash([])
}

// ---- one head -------------------------------------------------------------------------------------------------

function attention(machine) {
  const { data, part } = machine
  const { names, causal, row, color } = data.head
  const n = names.length
  const room = part("board").clientWidth
  if (room < 100 || !machine.ink) return
  const named = n <= 24
  const large = machine.large
  const left = (named ? 98 : 30) * large
  const top = (named ? 86 : 22) * large
  const cell = Math.max(2, Math.floor(Math.min(room - left - 6, 330 * large) / n))
  const side = cell * n
  const canvas = part("board").querySelector("canvas")
  const pen = fit(canvas, left + side + 8, top + side + 6)
  const palette = ramp(data.ramp)
  const from = machine.at * n * n
  for (let q = 0; q < n; q++)
    for (let k = 0; k < (causal ? q + 1 : n); k++) {
      const [r, g, b] = palette[machine.weights[from + q * n + k]]
      pen.fillStyle = `rgb(${r},${g},${b})`
      pen.fillRect(left + k * cell, top + q * cell, cell - (cell > 5 ? 1 : 0), cell - (cell > 5 ? 1 : 0))
    }
  if (named) names.forEach((name, i) => {
    words(machine, pen, clip(name, SHORT), left - 6, top + (i + 0.5) * cell, { align: "right", mono: true, size: 12, bold: i === row })
    pen.save()
    pen.translate(left + (i + 0.5) * cell, top - 6)
    pen.rotate(-Math.PI / 2)
    words(machine, pen, clip(name, SHORT - 1), 0, 0, { mono: true, size: 12 })
    pen.restore()
  })
  words(machine, pen, named ? data.words.columns : data.words.rows, left, (named ? 6 : 10) * large, { size: 12 })
  pen.strokeStyle = color
  pen.lineWidth = 3
  pen.strokeRect(left - 1, top + row * cell - 1, (causal ? row + 1 : n) * cell + 1, cell + 1)
  canvas.setAttribute("aria-label", data.head.said[machine.at])
  canvas.setAttribute("role", "img") // not before it has a name
  part("headsaid").textContent = data.head.said[machine.at]
}

function ramp(colors) {
  const stops = colors.map(c => [1, 3, 5].map(at => parseInt(c.slice(at, at + 2), 16)))
  return Array.from({ length: 256 }, (_, v) => {
    const at = v / 255 * (stops.length - 1)
    const low = Math.min(Math.floor(at), stops.length - 2)
    return stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * (at - low)))
  })
}

// ---- moving ---------------------------------------------------------------------------------------------------

function slider(machine) {
  const { data, part } = machine
  const area = layout(machine)
  const n = data.steps.length
  const [track, rail, thumb] = [part("track"), part("rail"), part("thumb")]
  for (const box of [track, rail]) {
    box.style.left = area.left + "px"
    box.style.width = Math.max(area.right - area.left, 10) + "px"
  }
  if (rail.childElementCount !== n) rail.replaceChildren(...data.steps.map(() => make("i", "")))
  data.steps.forEach((step, i) => { rail.children[i].style.left = area.x(step) - area.left + "px" })
  thumb.style.left = area.x(data.steps[machine.at]) - area.left + "px"
  track.setAttribute("aria-valuemin", "0")
  track.setAttribute("aria-valuemax", String(n - 1))
  track.setAttribute("aria-valuenow", String(machine.at))
  track.setAttribute("aria-valuetext", data.said[machine.at])
  track.setAttribute("aria-disabled", String(n < 2))
}

function go(machine, at, { wait = 160 } = {}) {
  const to = Math.max(0, Math.min(at, machine.data.steps.length - 1))
  if (to === machine.at) return
  machine.at = to
  show(machine)
  clearTimeout(machine.later)
  if (!machine.timer) machine.later = setTimeout(() => machine.commit(), wait) // the server prepares what is near
}

function pause(machine) {
  if (!machine.timer) return
  clearInterval(machine.timer)
  machine.timer = 0
  show(machine)
  machine.commit()
}

function play(machine) {
  if (machine.timer) return pause(machine)
  const last = machine.data.steps.length - 1
  if (machine.at === last) machine.at = 0
  machine.timer = setInterval(() => {
    if (!machine.root.isConnected || machine.at >= machine.data.steps.length - 1) pause(machine)
    else go(machine, machine.at + 1)
  }, PACE)
  show(machine)
}

function listen(machine) {
  const { part, data } = machine
  const last = () => machine.data.steps.length - 1
  part("play").onclick = () => play(machine)
  const drag = (box, left) => {
    const to = event => {
      const area = layout(machine)
      const x = event.clientX - box.getBoundingClientRect().left + left()
      let best = 0
      machine.data.steps.forEach((s, i) => {
        if (Math.abs(area.x(s) - x) < Math.abs(area.x(machine.data.steps[best]) - x)) best = i
      })
      pause(machine)
      go(machine, best)
    }
    box.onpointerdown = event => {
      if (event.button !== 0) return
      machine.drag = true
      box.setPointerCapture(event.pointerId)
      to(event)
    }
    box.onpointermove = event => { if (machine.drag) to(event) }
    box.onpointerup = box.onpointercancel = () => { machine.drag = false }
  }
  drag(part("plot"), () => 0)
  drag(part("track"), () => LEFT * machine.large)
  part("track").onkeydown = event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 4, PageDown: -4 }
    const to = event.key === "Home" ? 0 : event.key === "End" ? last() : machine.at + (moves[event.key] ?? NaN)
    if (Number.isNaN(to)) return
    event.preventDefault()
    pause(machine)
    go(machine, to)
  }
  part("strip").onclick = event => {
    const chip = event.target.closest(".chip")
    if (!chip || chip.classList.contains("greyed")) return
    machine.focus = Number(chip.dataset.index)
    machine.send("place", machine.focus)
  }
  part("strip").onkeydown = event => walk(machine, event)
  part("layer").onchange = part("headno").onchange = () =>
    machine.send("head", [Number(part("layer").value), Number(part("headno").value)])
}

function walk(machine, event) {
  const end = machine.chips.length - 1
  const move = { ArrowRight: 1, ArrowLeft: -1, Home: -end, End: end }[event.key]
  if (move === undefined || end < 0 || event.ctrlKey || event.metaKey || event.altKey) return
  event.preventDefault()
  machine.chips[machine.focus].tabIndex = -1
  machine.focus = Math.max(0, Math.min(machine.focus + move, end))
  machine.chips[machine.focus].tabIndex = 0
  machine.chips[machine.focus].focus()
}
