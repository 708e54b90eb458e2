// ---- drawing --------------------------------------------------------------------------------------------------

const FAINT = "rgba(128, 136, 145, 0.28)"
const FRAME = "rgba(128, 136, 145, 0.8)"

function draw(curve) {
  const { canvas, plot, data, root } = curve
  const width = plot.clientWidth
  const height = plot.clientHeight
  curve.scale = makeScale(curve, Math.max(width, 120), Math.max(height, 60))
  if (width < 60 || height < 60) return
  const ratio = window.devicePixelRatio || 1
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
  }
  const pen = canvas.getContext("2d")
  const style = getComputedStyle(root)
  const color = name => style.getPropertyValue(name).trim()
  curve.ink = {
    text: style.color, page: color("--st-background-color") || "white", family: style.fontFamily,
    chosen: color("--st-primary-color") || style.color,
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  pen.clearRect(0, 0, width, height)
  pen.font = `${Math.round(13 * letters())}px ${curve.ink.family}`
  const s = curve.scale
  drawAxes(curve, pen)
  const over = curve.view ? 0 : 4 // a dot on the edge stays whole
  pen.save()
  pen.beginPath()
  pen.rect(s.left - over, 0, s.right - s.left + 2 * over, s.bottom + 1)
  pen.clip()
  for (const line of data.series) if (!curve.off.has(line.name)) drawLine(curve, pen, line)
  pen.restore()
  drawReferences(curve, pen)
  drawMarks(curve, pen)
  drawCursors(curve, pen)
  report(curve)
}

function stroke(pen, ...points) {
  pen.beginPath()
  points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)))
  pen.stroke()
}

function drawAxes(curve, pen) {
  const s = curve.scale
  pen.lineWidth = 1
  pen.setLineDash([])
  pen.textBaseline = "middle"
  pen.textAlign = "right"
  pen.fillStyle = curve.ink.text
  const values = s.log ? spacedTicks(s.low, s.high, s.y, 24) : niceTicks(s.low, s.high, (s.bottom - s.top) / 45)
  pen.strokeStyle = FAINT
  for (const value of values) {
    const y = Math.round(s.y(value)) + 0.5
    stroke(pen, [s.left, y], [s.right, y])
    pen.fillText(plain(value), s.left - 7, y)
  }
  pen.strokeStyle = FRAME
  if (curve.data.perplexity) drawPerplexities(curve, pen)
  pen.textBaseline = "top"
  pen.textAlign = "center"
  const gap = (s.right - s.left) / 90
  const steps = s.logX ? spacedTicks(s.from, s.to, s.x, 44) : niceTicks(s.from, s.to, gap)
  for (const step of steps) {
    if (!Number.isInteger(Number(step.toPrecision(9)))) continue
    const x = Math.round(s.x(step)) + 0.5
    stroke(pen, [x, s.bottom], [x, s.bottom + 4])
    pen.fillText(plain(step), x, s.bottom + 8)
  }
  pen.strokeRect(s.left + 0.5, s.top + 0.5, s.right - s.left, s.bottom - s.top)
}

// The same heights read as exp(loss).
function drawPerplexities(curve, pen) {
  const s = curve.scale
  pen.textAlign = "left"
  const place = p => s.y(Math.log(p))
  const from = Math.exp(Math.max(s.low, s.log ? 1e-9 : 0))
  for (const p of (s.log ? crowdedTicks : spacedTicks)(from, Math.exp(Math.min(s.high, 60)), place, 22)) {
    if (p <= 1 && s.log) continue // a loss of 0
    const y = Math.round(place(p)) + 0.5
    stroke(pen, [s.right, y], [s.right + 4, y])
    pen.fillText(plain(p), s.right + 8, y)
  }
}

function drawLine(curve, pen, line) {
  const s = curve.scale
  const none = i => line.y[i] === null || (s.log && line.y[i] <= 0) || (s.logX && line.x[i] <= 0)
  pen.globalAlpha = line.alpha
  pen.strokeStyle = pen.fillStyle = line.color
  pen.lineWidth = line.width
  pen.lineJoin = "round"
  pen.setLineDash(line.dash)
  pen.beginPath()
  let down = false
  line.y.forEach((y, i) => {
    if (!none(i)) pen[down ? "lineTo" : "moveTo"](s.x(line.x[i]), s.y(y))
    down = !none(i)
  })
  pen.stroke()
  pen.setLineDash([])
  const few = line.y.filter(y => y !== null).length <= 60
  line.y.forEach((y, i) => {
    if (s.logX && line.x[i] <= 0) return
    if (y === null) return cross(curve, pen, s.x(line.x[i]))
    const island = (line.y[i - 1] ?? null) === null && (line.y[i + 1] ?? null) === null
    if (none(i) || (!few && !island)) return
    pen.beginPath()
    pen.arc(s.x(line.x[i]), s.y(y), Math.max(line.width, 2) + 0.8, 0, 7)
    pen.fill()
  })
  pen.globalAlpha = 1
}

// A step whose number is not finite leaves a gap in the line and a cross on the axis.
function cross(curve, pen, x) {
  const y = curve.scale.bottom - 7
  pen.lineWidth = 2
  stroke(pen, [x - 4, y - 4], [x + 4, y + 4])
  stroke(pen, [x + 4, y - 4], [x - 4, y + 4])
}

function drawReferences(curve, pen) {
  const s = curve.scale
  const seen = curve.data.references.filter(r => r.value > 0 || !s.log)
    .map(r => ({ ...r, y: s.y(r.value), words: `${r.label} · ${three(r.value)}` }))
    .filter(r => r.y >= s.top && r.y <= s.bottom)
  for (const line of seen) {
    pen.strokeStyle = line.color
    pen.lineWidth = line.width
    pen.setLineDash(line.dash)
    stroke(pen, [s.left, line.y], [s.right, line.y])
  }
  pen.setLineDash([])
  const labels = seen.map(r => ({
    key: r.label, width: pen.measureText(r.words).width, y: r.y, below: r.role === "floor",
  }))
  const area = { ...s, bottom: s.bottom - (curve.data.marks.length ? 8 : 0) }
  curve.labels = placeLabels(labels, area, busyPoints(curve), curve.slots)
  seen.forEach((line, i) => drawWords(curve, pen, line, curve.labels[i]))
}

function drawWords(curve, pen, line, place) {
  if (Math.abs(place.level) > 1) { // away from its line: a leader says to which it belongs
    const up = place.level < 0
    const x = leaderAt(place, line.y, curve.labels)
    pen.strokeStyle = pen.fillStyle = line.color
    pen.lineWidth = 1
    stroke(pen, [x, line.y], [x, up ? place.y + LABEL_HEIGHT - 3 : place.y + 2])
    pen.beginPath()
    pen.arc(x, line.y, 2.5, 0, 7)
    pen.fill()
  }
  pen.textAlign = "left"
  pen.textBaseline = "middle"
  pen.lineWidth = 4
  pen.lineJoin = "round"
  pen.strokeStyle = curve.ink.page
  pen.fillStyle = curve.ink.text
  for (const put of ["strokeText", "fillText"]) {
    pen[put](line.words, place.x, place.y + LABEL_HEIGHT / 2, place.width)
  }
}

// The end of the words from which a leader to their line crosses no other words, if there is one.
function leaderAt(place, y, labels) {
  const [from, to] = [Math.min(y, place.y), Math.max(y, place.y)]
  const ends = [place.x + place.width - 3, place.x + 3]
  const crosses = x => labels.some(other => other !== place && x > other.x - 2 && x < other.x + other.width + 2
    && other.y < to && other.y + LABEL_HEIGHT > from)
  return ends.find(x => !crosses(x)) ?? ends[0]
}

// Steps that are kept: small ticks that stand on the axis.
function drawMarks(curve, pen) {
  const s = curve.scale
  pen.strokeStyle = curve.ink.chosen
  pen.lineWidth = 2
  for (const step of curve.data.marks) {
    if (step < s.from || step > s.to) continue
    stroke(pen, [s.x(step), s.bottom], [s.x(step), s.bottom - 7])
  }
}

function drawCursors(curve, pen) {
  const s = curve.scale
  if (curve.drag) {
    pen.fillStyle = "rgba(128, 136, 145, 0.25)"
    const [a, b] = [curve.drag.from, curve.drag.to].sort((p, q) => p - q)
    pen.fillRect(Math.max(a, s.left), s.top, Math.min(b, s.right) - Math.max(a, s.left), s.bottom - s.top)
  }
  const inside = step => step !== null && step >= s.from && step <= s.to
  if (inside(curve.chosen)) {
    const x = s.x(curve.chosen)
    pen.strokeStyle = pen.fillStyle = curve.ink.chosen
    pen.lineWidth = 2
    stroke(pen, [x, s.top], [x, s.bottom])
    pen.beginPath()
    pen.moveTo(x - 6, s.top)
    pen.lineTo(x + 6, s.top)
    pen.lineTo(x, s.top + 8)
    pen.fill()
    dots(curve, pen, curve.chosen)
  }
  if (inside(curve.cursor)) {
    const x = Math.round(s.x(curve.cursor)) + 0.5
    pen.strokeStyle = curve.ink.text
    pen.lineWidth = 1
    pen.setLineDash([3, 3])
    stroke(pen, [x, s.top], [x, s.bottom])
    pen.setLineDash([])
    dots(curve, pen, curve.cursor)
  }
}

function dots(curve, pen, step) {
  for (const { line, at } of under(curve, step)) {
    const y = line.y[at]
    if (y === null || line.x[at] !== step || (curve.scale.log && y <= 0)) continue
    pen.fillStyle = line.color
    pen.strokeStyle = curve.ink.page
    pen.lineWidth = 2
    pen.beginPath()
    pen.arc(curve.scale.x(step), curve.scale.y(y), 5, 0, 7)
    pen.fill()
    pen.stroke()
  }
}

// For each visible line its last point at or before a step.
function under(curve, step) {
  const found = []
  for (const line of curve.data.series) {
    if (curve.off.has(line.name)) continue
    let at = -1
    for (let i = 0; i < line.x.length && line.x[i] <= step; i++) at = i
    if (at >= 0) found.push({ line, at })
  }
  return found
}

function report(curve) {
  const { root, data, plot, steps } = curve
  const last = steps.length ? steps[steps.length - 1] : 0
  curve.draws += 1
  const facts = {
    view: curve.view ? curve.view.map(x => Number(x.toFixed(2))).join(":") : "all",
    points: data.series.reduce((n, line) => n + line.y.filter(y => y !== null).length, 0),
    lastStep: steps.length ? last : "",
    cursor: curve.cursor ?? "",
    chosen: curve.chosen ?? "",
    labels: curve.labels.map(p => [p.x, p.y, p.width, LABEL_HEIGHT].map(Math.round).join(" ")).join(","),
    draws: curve.draws,
  }
  for (const [name, value] of Object.entries(facts)) root.dataset[name] = String(value)
  root.querySelector(".reset").hidden = !curve.view
  const words = readout(curve)
  const line = root.querySelector(".readout")
  if (line.textContent !== words) line.textContent = words
  const now = curve.cursor ?? curve.chosen ?? last
  const aria = { valuemin: steps[0] ?? 0, valuemax: last, valuenow: now, valuetext: words }
  for (const [name, value] of Object.entries(aria)) plot.setAttribute(`aria-${name}`, String(value))
}

function readout(curve) {
  const { data, steps } = curve
  const step = curve.cursor ?? curve.chosen
  if (!steps.length) return data.words.waiting
  if (step === null) {
    const how = data.presses ? data.words.press : data.words.move
    const from0 = data.logX && data.series.some(line => line.x.some(x => x <= 0))
    return from0 ? how + " " + data.words.noStep0 : how
  }
  let words = `${data.xTitle} ${step.toLocaleString("en-US")}`
  for (const { line, at } of under(curve, step)) {
    const y = line.y[at]
    const where = line.x[at] === step ? "" : ` (${data.xTitle} ${line.x[at].toLocaleString("en-US")})`
    words += `  |  ${line.name}${where}: `
    if (y === null) words += data.words.notFinite
    else words += y + (data.perplexity ? ` (${data.perplexity} ${three(Math.exp(y))})` : data.unit && ` ${data.unit}`)
  }
  return words
}
