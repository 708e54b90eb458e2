// A growing curve on a canvas. New data never resets zoom, cursor or legend.
const curves = new WeakMap()
const RIGHT = 52
const TOP = 10
const BOTTOM = 26

export default function (component) {
  const { data, parentElement } = component
  const root = parentElement.querySelector(".curve")
  if (!root || !data) return
  let curve = curves.get(parentElement)
  if (!curve) {
    curve = { view: null, cursor: null, drag: null, off: new Set(), draws: 0 }
    curves.set(parentElement, curve)
  }
  curve.root = root
  curve.data = data
  curve.plot = root.querySelector(".plot")
  curve.canvas = root.querySelector("canvas")
  curve.steps = allSteps(data.series)
  root.querySelector(".ytitle").textContent = data.yTitle
  root.querySelector(".ptitle").textContent = data.perplexity + " = exp(loss)"
  root.querySelector(".xtitle").textContent = data.xTitle
  curve.plot.style.height = data.height + "px"
  drawLegend(curve)
  listen(curve)
  if (curve.observed !== curve.plot) {
    curve.observer?.disconnect()
    curve.observer = new ResizeObserver(() => draw(curve))
    curve.observer.observe(curve.plot)
    curve.observed = curve.plot
  }
  draw(curve)
  return () => {
    curve.observer.disconnect()
    curves.delete(parentElement)
  }
}

function allSteps(series) {
  const steps = new Set()
  for (const line of series) for (const x of line.x) steps.add(x)
  return [...steps].sort((a, b) => a - b)
}

// ---- legend and controls -------------------------------------------------------------------------------------

function drawLegend(curve) {
  const legend = curve.root.querySelector(".legend")
  const names = JSON.stringify(curve.data.series.map(line => [line.name, line.color, line.dash]))
  if (curve.legend !== names || !legend.firstChild) {
    curve.legend = names
    legend.replaceChildren(...curve.data.series.map(line => {
      const button = document.createElement("button")
      button.type = "button"
      const swatch = document.createElement("span")
      swatch.className = "swatch"
      swatch.style.borderTopColor = line.color
      swatch.style.borderTopWidth = line.width + "px"
      if (line.dash.length) swatch.style.borderTopStyle = line.dash[0] > 4 ? "dashed" : "dotted"
      const name = document.createElement("span")
      name.textContent = line.name
      button.append(swatch, name)
      button.dataset.series = line.name
      return button
    }))
  }
  for (const button of legend.children) {
    const name = button.dataset.series
    button.setAttribute("aria-pressed", String(!curve.off.has(name)))
    button.onclick = () => {
      if (curve.off.has(name)) curve.off.delete(name)
      else curve.off.add(name)
      button.setAttribute("aria-pressed", String(!curve.off.has(name)))
      draw(curve)
    }
  }
  curve.root.querySelector(".reset").onclick = () => setView(curve, null)
}

function setView(curve, view) {
  const [first, last] = extent(curve)
  if (view) {
    const least = Math.max((last - first) / 400, 2)
    let [a, b] = view
    if (b - a < least) [a, b] = [(a + b - least) / 2, (a + b + least) / 2]
    a = Math.max(a, first)
    view = b - a >= (last - first) * 0.999 ? null : [a, b]
  }
  curve.view = view
  draw(curve)
}

function extent(curve) {
  const steps = curve.steps
  if (!steps.length) return [0, 1]
  return steps[0] === steps[steps.length - 1] ? [steps[0], steps[0] + 1] : [steps[0], steps[steps.length - 1]]
}

function listen(curve) {
  const plot = curve.plot
  const at = event => event.clientX - plot.getBoundingClientRect().left
  plot.onpointerdown = event => {
    if (event.button !== 0) return
    curve.drag = { from: at(event), to: at(event) }
    plot.setPointerCapture(event.pointerId)
  }
  plot.onpointermove = event => {
    if (curve.drag) curve.drag.to = at(event)
    point(curve, nearest(curve, curve.scale.toStep(at(event))))
  }
  plot.onpointerup = () => {
    const drag = curve.drag
    curve.drag = null
    if (drag && Math.abs(drag.to - drag.from) > 6) {
      setView(curve, [drag.from, drag.to].sort((a, b) => a - b).map(curve.scale.toStep))
    } else draw(curve)
  }
  plot.onpointercancel = () => { curve.drag = null; draw(curve) }
  plot.onpointerleave = () => { if (!curve.drag && !plot.matches(":focus-visible")) point(curve, null) }
  plot.ondblclick = () => setView(curve, null)
  plot.onwheel = event => {
    if (!event.ctrlKey && !event.metaKey) return // the page keeps its scrolling
    event.preventDefault()
    zoom(curve, event.deltaY > 0 ? 1.25 : 0.8, curve.scale.toStep(at(event)))
  }
  plot.onkeydown = event => pressed(curve, event)
}

function zoom(curve, factor, around) {
  const [a, b] = curve.view ?? extent(curve)
  setView(curve, [around - (around - a) * factor, around + (b - around) * factor])
}

function pressed(curve, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !curve.steps.length) return
  const steps = curve.steps
  const end = steps.indexOf(nearest(curve, curve.view ? curve.view[1] : steps[steps.length - 1])) + 1
  const here = curve.cursor === null ? end : steps.indexOf(nearest(curve, curve.cursor))
  const middle = () => curve.cursor ?? (curve.view ?? extent(curve)).reduce((a, b) => a + b) / 2
  const pan = share => {
    if (!curve.view) return
    const by = (curve.view[1] - curve.view[0]) * share
    setView(curve, curve.view.map(x => x + by))
  }
  const actions = {
    ArrowRight: () => event.shiftKey ? pan(0.2) : point(curve, steps[Math.min(here + 1, steps.length - 1)], true),
    ArrowLeft: () => event.shiftKey ? pan(-0.2) : point(curve, steps[Math.max(here - 1, 0)], true),
    Home: () => point(curve, steps[0], true),
    End: () => point(curve, steps[steps.length - 1], true),
    "+": () => zoom(curve, 0.6, middle()),
    "=": () => zoom(curve, 0.6, middle()),
    "-": () => zoom(curve, 1 / 0.6, middle()),
    "0": () => setView(curve, null),
    Escape: () => setView(curve, null),
  }
  if (!(event.key in actions)) return
  event.preventDefault()
  actions[event.key]()
}

function nearest(curve, step) {
  let best = null
  for (const x of curve.steps) if (best === null || Math.abs(x - step) < Math.abs(best - step)) best = x
  return best
}

function point(curve, step, follow) {
  curve.cursor = step
  if (follow && curve.view && (step < curve.view[0] || step > curve.view[1])) {
    const half = (curve.view[1] - curve.view[0]) / 2
    setView(curve, [step - half, step + half])
  } else draw(curve)
}

// ---- scales ---------------------------------------------------------------------------------------------------

function valueRange(curve, from, to) {
  let low = Infinity
  let high = -Infinity
  const take = y => { if (y < low) low = y; if (y > high) high = y }
  for (const line of curve.data.series) {
    if (curve.off.has(line.name)) continue
    line.y.forEach((y, i) => {
      if (y === null) return
      if (line.x[i] >= from && line.x[i] <= to) take(y)
      const next = line.y[i + 1] ?? null
      if (next === null) return
      for (const edge of [from, to]) { // where the line enters and leaves the view
        const share = (edge - line.x[i]) / (line.x[i + 1] - line.x[i])
        if (share > 0 && share < 1) take(y + (next - y) * share)
      }
    })
  }
  if (!curve.view) for (const reference of curve.data.references) take(reference.value)
  if (low > high) return curve.data.logY ? [0.1, 10] : [0, 1]
  if (low === high) return [low * 0.9 - 0.01, high * 1.1 + 0.01]
  return [low, high]
}

function makeScale(curve, width, height) {
  const [a, b] = curve.view ?? extent(curve)
  const [low, high] = valueRange(curve, a, b)
  const log = curve.data.logY && low > 0
  const f = log ? Math.log : x => x
  const inner = height - TOP - BOTTOM
  const pad = (f(high) - f(low)) * (24 / Math.max(inner - 48, 60)) // room for the words on the reference lines
  const [y0, y1] = [f(low) - pad, f(high) + pad]
  const back = log ? Math.exp : x => x
  const left = 48
  const right = width - RIGHT
  return {
    left, right, top: TOP, bottom: height - BOTTOM, log, low: back(y0), high: back(y1), from: a, to: b,
    x: step => left + (step - a) / (b - a) * (right - left),
    toStep: px => a + (Math.min(Math.max(px, left), right) - left) / (right - left) * (b - a),
    y: value => height - BOTTOM - (f(value) - y0) / (y1 - y0) * inner,
  }
}

function niceTicks(low, high, most) {
  const raw = (high - low) / Math.max(most, 1)
  if (!(raw > 0)) return []
  const power = 10 ** Math.floor(Math.log10(raw))
  const size = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= raw)
  const ticks = []
  for (let i = Math.ceil(low / size - 1e-9); i * size <= high + 1e-9 * size; i++) ticks.push(i * size)
  return ticks
}

function roundSeries(low, high, factors) {
  const ticks = []
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
    for (const m of factors) {
      const v = m * 10 ** e
      if (v >= low && v <= high) ticks.push(v)
    }
  return ticks
}

// Round numbers at least `gap` pixels apart; the densest set that fits, even steps when a set has too few.
function spacedTicks(low, high, place, gap) {
  for (const factors of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]]) {
    const ticks = roundSeries(low, high, factors)
    if (ticks.length < 3) break
    if (ticks.every((t, i) => !i || Math.abs(place(t) - place(ticks[i - 1])) >= gap)) return ticks
  }
  const even = niceTicks(low, high, 5)
  return even.filter((t, i) => t > 0 && (!i || Math.abs(place(t) - place(even[i - 1])) >= gap))
}

function plain(x) {
  if (x === 0) return "0"
  const size = Math.abs(x)
  if (size >= 1e6 || size < 1e-3) return x.toExponential(1).replace("e+", "e")
  return String(Number(x.toPrecision(4)))
}

function stepText(x) {
  return x >= 10000 ? plain(x / 1000) + "k" : plain(x)
}

// ---- drawing --------------------------------------------------------------------------------------------------

function draw(curve) {
  const { canvas, plot, data, root } = curve
  const width = plot.clientWidth
  const height = plot.clientHeight
  if (width < 60 || height < 60) return
  const ratio = window.devicePixelRatio || 1
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
  }
  const pen = canvas.getContext("2d")
  const style = getComputedStyle(root)
  const color = name => style.getPropertyValue(name).trim()
  curve.ink = { text: style.color, page: color("--st-background-color") || "white", family: style.fontFamily }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  pen.clearRect(0, 0, width, height)
  pen.font = `13px ${curve.ink.family}`
  curve.scale = makeScale(curve, width, height)
  drawAxes(curve, pen)
  pen.save()
  pen.beginPath()
  const over = curve.view ? 0 : 4 // a dot on the edge stays whole
  pen.rect(curve.scale.left - over, 0, curve.scale.right - curve.scale.left + 2 * over, curve.scale.bottom + 1)
  pen.clip()
  for (const line of data.series) if (!curve.off.has(line.name)) drawLine(curve, pen, line)
  pen.restore()
  for (const reference of data.references) drawReference(curve, pen, reference)
  drawCursor(curve, pen)
  report(curve)
}

function drawAxes(curve, pen) {
  const s = curve.scale
  pen.lineWidth = 1
  pen.setLineDash([])
  pen.textBaseline = "middle"
  const losses = s.log ? spacedTicks(s.low, s.high, s.y, 24) : niceTicks(s.low, s.high, (s.bottom - s.top) / 45)
  for (const value of losses) {
    const y = Math.round(s.y(value)) + 0.5
    pen.strokeStyle = "rgba(128, 136, 145, 0.28)"
    pen.beginPath()
    pen.moveTo(s.left, y)
    pen.lineTo(s.right, y)
    pen.stroke()
    pen.fillStyle = curve.ink.text
    pen.textAlign = "right"
    pen.fillText(plain(value), s.left - 7, y)
  }
  pen.textAlign = "left"
  const place = p => s.y(Math.log(p))
  const from = Math.exp(Math.max(s.low, s.log ? 1e-9 : 0))
  for (const p of spacedTicks(from, Math.exp(Math.min(s.high, 60)), place, 22)) {
    if (p <= 1 && s.log) continue
    const y = Math.round(place(p)) + 0.5
    pen.strokeStyle = "rgba(128, 136, 145, 0.8)"
    pen.beginPath()
    pen.moveTo(s.right, y)
    pen.lineTo(s.right + 4, y)
    pen.stroke()
    pen.fillText(plain(p), s.right + 8, y)
  }
  pen.textBaseline = "top"
  pen.textAlign = "center"
  for (const step of niceTicks(s.from, s.to, (s.right - s.left) / 90)) {
    if (!Number.isInteger(step)) continue
    const x = Math.round(s.x(step)) + 0.5
    pen.beginPath()
    pen.moveTo(x, s.bottom)
    pen.lineTo(x, s.bottom + 4)
    pen.stroke()
    pen.fillText(stepText(step), x, s.bottom + 8)
  }
  pen.strokeStyle = "rgba(128, 136, 145, 0.8)"
  pen.strokeRect(s.left + 0.5, s.top + 0.5, s.right - s.left, s.bottom - s.top)
}

function drawLine(curve, pen, line) {
  const s = curve.scale
  pen.strokeStyle = pen.fillStyle = line.color
  pen.lineWidth = line.width
  pen.lineJoin = "round"
  pen.setLineDash(line.dash)
  pen.beginPath()
  let down = false
  line.y.forEach((y, i) => {
    if (y === null || (s.log && y <= 0)) {
      down = false
      return
    }
    const [px, py] = [s.x(line.x[i]), s.y(y)]
    if (down) pen.lineTo(px, py)
    else pen.moveTo(px, py)
    down = true
  })
  pen.stroke()
  pen.setLineDash([])
  const alone = line.y.filter(y => y !== null).length <= 60
  line.y.forEach((y, i) => {
    if (y === null) return cross(curve, pen, s.x(line.x[i]))
    const island = (line.y[i - 1] ?? null) === null && (line.y[i + 1] ?? null) === null
    if (!alone && !island) return
    pen.beginPath()
    pen.arc(s.x(line.x[i]), s.y(y), Math.max(line.width, 2) + 0.8, 0, 7)
    pen.fill()
  })
}

// A step whose number is not finite leaves a gap in the line and a cross on the axis.
function cross(curve, pen, x) {
  const y = curve.scale.bottom - 7
  pen.lineWidth = 2
  pen.beginPath()
  pen.moveTo(x - 4, y - 4)
  pen.lineTo(x + 4, y + 4)
  pen.moveTo(x + 4, y - 4)
  pen.lineTo(x - 4, y + 4)
  pen.stroke()
}

function drawReference(curve, pen, reference) {
  const s = curve.scale
  const y = s.y(reference.value)
  if (y < s.top || y > s.bottom) return
  pen.strokeStyle = reference.color
  pen.lineWidth = 2
  pen.setLineDash(reference.dash)
  pen.beginPath()
  pen.moveTo(s.left, y)
  pen.lineTo(s.right, y)
  pen.stroke()
  pen.setLineDash([])
  const words = `${reference.label} · ${three(reference.value)}`
  pen.textAlign = "right"
  pen.textBaseline = reference.role === "floor" ? "top" : "bottom"
  const at = y + (reference.role === "floor" ? 5 : -5)
  halo(curve, pen, words, s.right - 8, at, s.right - s.left - 16)
}

function halo(curve, pen, words, x, y, most) {
  pen.lineWidth = 4
  pen.lineJoin = "round"
  pen.strokeStyle = curve.ink.page
  pen.strokeText(words, x, y, most)
  pen.fillStyle = curve.ink.text
  pen.fillText(words, x, y, most)
}

function three(x) {
  return x === 0 ? "0" : Math.abs(x) >= 1e6 || Math.abs(x) < 1e-4 ? x.toExponential(2) : tidy(x.toPrecision(3))
}

function tidy(text) {
  return text.includes("e") ? Number(text).toLocaleString("en-US") : text
}

function drawCursor(curve, pen) {
  const s = curve.scale
  if (curve.drag) {
    pen.fillStyle = "rgba(128, 136, 145, 0.25)"
    const [a, b] = [curve.drag.from, curve.drag.to].sort((p, q) => p - q)
    pen.fillRect(Math.max(a, s.left), s.top, Math.min(b, s.right) - Math.max(a, s.left), s.bottom - s.top)
  }
  if (curve.cursor === null || curve.cursor < s.from || curve.cursor > s.to) return
  const x = Math.round(s.x(curve.cursor)) + 0.5
  pen.strokeStyle = curve.ink.text
  pen.lineWidth = 1
  pen.setLineDash([3, 3])
  pen.beginPath()
  pen.moveTo(x, s.top)
  pen.lineTo(x, s.bottom)
  pen.stroke()
  pen.setLineDash([])
  for (const { line, at } of underCursor(curve)) {
    const y = line.y[at]
    if (y === null || line.x[at] !== curve.cursor) continue
    pen.fillStyle = line.color
    pen.strokeStyle = curve.ink.page
    pen.lineWidth = 2
    pen.beginPath()
    pen.arc(x, s.y(y), 5, 0, 7)
    pen.fill()
    pen.stroke()
  }
}

// For each visible line its last point at or before the cursor.
function underCursor(curve) {
  const found = []
  for (const line of curve.data.series) {
    if (curve.off.has(line.name)) continue
    let at = -1
    for (let i = 0; i < line.x.length && line.x[i] <= curve.cursor; i++) at = i
    if (at >= 0) found.push({ line, at })
  }
  return found
}

function report(curve) {
  const { root, data, plot } = curve
  curve.draws += 1
  const steps = curve.steps
  const last = steps.length ? steps[steps.length - 1] : 0
  root.dataset.view = curve.view ? curve.view.map(x => Number(x.toFixed(2))).join(":") : "all"
  root.dataset.points = String(data.series.reduce((n, line) => n + line.y.filter(y => y !== null).length, 0))
  root.dataset.lastStep = steps.length ? String(last) : ""
  root.dataset.cursor = curve.cursor === null ? "" : String(curve.cursor)
  root.dataset.draws = String(curve.draws)
  const reset = root.querySelector(".reset")
  reset.hidden = !curve.view
  const readout = root.querySelector(".readout")
  let words = steps.length ? "Move over the curve or press ← → to read values; drag to zoom." : "Waiting for the first step."
  if (curve.cursor !== null) {
    words = `${data.xTitle} ${curve.cursor.toLocaleString("en-US")}`
    for (const { line, at } of underCursor(curve)) {
      const y = line.y[at]
      const where = line.x[at] === curve.cursor ? "" : ` (${data.xTitle} ${line.x[at]})`
      words += `  |  ${line.name}${where}: `
      words += y === null ? "not finite" : `${y} (${data.perplexity} ${three(Math.exp(y))})`
    }
  }
  if (readout.textContent !== words) readout.textContent = words
  plot.setAttribute("aria-valuemin", String(steps[0] ?? 0))
  plot.setAttribute("aria-valuemax", String(last))
  plot.setAttribute("aria-valuenow", String(curve.cursor ?? last))
  plot.setAttribute("aria-valuetext", words)
}
