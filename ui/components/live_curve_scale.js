// ---- scales and ticks ----------------------------------------------------------------------------------------

const LEFT = 48
const RIGHT = 52
const TOP = 10
const BOTTOM = 26

// Letters grow with the page's own: 1, or more on a projector.
const letters = () => Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1)

function extent(steps) {
  if (!steps.length) return [0, 1]
  const [first, last] = [steps[0], steps[steps.length - 1]]
  return [first, last === first ? first + 1 : last]
}

function valueRange(curve, from, to) {
  let low = Infinity
  let high = -Infinity
  const positive = curve.data.logY
  const take = y => {
    if (positive && y <= 0) return
    if (y < low) low = y
    if (y > high) high = y
  }
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
  if (low > high) return positive ? [0.1, 10] : [0, 1]
  if (low === high) return [low * 0.9 - (positive ? 0 : 0.01), high * 1.1 + 0.01]
  return [low, high]
}

function makeScale(curve, width, height) {
  const { logX, perplexity } = curve.data
  const [f, back] = logX ? [Math.log10, x => 10 ** x] : [x => x, x => x]
  const [first, last] = extent(curve.steps)
  const [from, to] = curve.view ? [Math.max(curve.view[0], logX ? first : -Infinity), curve.view[1]] : [first, last]
  const [low, high] = valueRange(curve, from, to)
  const log = curve.data.logY && low > 0
  const [g, gBack] = log ? [Math.log, Math.exp] : [x => x, x => x]
  const large = letters()
  const bottom = height - BOTTOM * large
  const inner = bottom - TOP
  const room = curve.data.marks.length ? 30 : 24 // for the words on the reference lines, and the marks
  const pad = (g(high) - g(low)) * (room / Math.max(inner - 2 * room, 60))
  const [y0, y1] = [g(low) - pad, g(high) + pad]
  const [left, right] = [LEFT * large, width - (perplexity ? RIGHT * large : 16)]
  const [x0, x1] = [f(from), f(to)]
  return {
    left, right, top: TOP, bottom, log, logX, f, back, from, to,
    low: gBack(y0), high: gBack(y1),
    x: step => left + (f(step) - x0) / (x1 - x0) * (right - left),
    toStep: px => back(x0 + (Math.min(Math.max(px, left), right) - left) / (right - left) * (x1 - x0)),
    y: value => bottom - (g(value) - y0) / (y1 - y0) * inner,
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
      if (v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9)) ticks.push(v)
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

// Round numbers on an axis that crowds towards one end: the roundest first, then those that still have room.
function crowdedTicks(low, high, place, gap) {
  const ticks = []
  for (const factors of [[1], [3], [2, 5], [1.5, 7]]) {
    for (const t of roundSeries(low, high, factors)) {
      if (ticks.every(other => Math.abs(place(t) - place(other)) >= gap)) ticks.push(t)
    }
  }
  return ticks.length < 3 ? spacedTicks(low, high, place, gap) : ticks.sort((a, b) => a - b)
}

function plain(x) {
  if (x === 0) return "0"
  const size = Math.abs(x)
  if (size >= 1e6 || size < 1e-3) return x.toExponential(1).replace("e+", "e").replace(".0e", "e")
  if (size >= 1e4) return plain(x / 1000) + "k"
  return String(Number(x.toPrecision(4)))
}

function three(x) {
  if (x === 0) return "0"
  const text = Math.abs(x) >= 1e6 || Math.abs(x) < 1e-4 ? x.toExponential(2) : x.toPrecision(3)
  return text.includes("e") && Math.abs(x) < 1e6 && Math.abs(x) >= 1e-4 ? Number(text).toLocaleString("en-US") : text
}
