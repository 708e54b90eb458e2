// A growing curve on a canvas. New data never resets zoom, cursor or legend.
// The other files live_curve_*.js are joined to this one: scales, labels, drawing, saving. All of it comes to the
// page once, see `Lasting` in _shared.py.
const curves = new WeakMap()

function liveCurve(component) {
  const { parentElement, setTriggerValue } = component
  const root = parentElement.querySelector(".curve")
  if (!root || !component.data) return () => {}
  const data = { ...component.data, series: component.data.series.map(unpacked) }
  let curve = curves.get(parentElement)
  if (!curve) {
    curve = { view: null, cursor: null, chosen: null, told: null, drag: null, off: new Set(), draws: 0, slots: {} }
    curves.set(parentElement, curve)
  }
  curve.root = root
  curve.data = data
  curve.plot = root.querySelector(".plot")
  curve.canvas = root.querySelector("canvas")
  curve.steps = allSteps(data)
  curve.send = step => setTriggerValue("pressed", step)
  if (data.cursor !== curve.told) curve.chosen = curve.told = data.cursor // else what was pressed here stays
  root.querySelector(".ytitle").textContent = data.yTitle
  root.querySelector(".ptitle").textContent = data.perplexityTitle
  root.querySelector(".xtitle").textContent = data.xTitle
  root.querySelector(".legend").setAttribute("aria-label", data.words.lines)
  root.querySelector(".reset").textContent = data.words.reset
  root.querySelector(".picture").title = data.words.save
  nameSlider(curve.plot, data.words.cursor)
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

// Steps as int32, values as float32 with NaN for gaps; null is a gap from here on.
function unpacked(line) {
  const buffer = text => Uint8Array.from(atob(text), sign => sign.charCodeAt(0)).buffer
  const y = Array.from(new Float32Array(buffer(line.y)), v => Number.isNaN(v) ? null : Number(v.toPrecision(7)))
  return { ...line, x: Array.from(new Int32Array(buffer(line.x))), y }
}

// A slider only once it has a name, and complete before its first point.
function nameSlider(plot, name) {
  plot.setAttribute("aria-label", name)
  if (plot.hasAttribute("role")) return
  for (const value of ["min", "max", "now"]) plot.setAttribute("aria-value" + value, 0)
  plot.setAttribute("tabindex", 0)
  plot.setAttribute("role", "slider")
}

function allSteps(data) {
  const steps = new Set()
  for (const line of data.series) for (const x of line.x) if (x > 0 || !data.logX) steps.add(x)
  return [...steps].sort((a, b) => a - b)
}

// ---- legend and controls -------------------------------------------------------------------------------------

function drawLegend(curve) {
  const legend = curve.root.querySelector(".legend")
  const names = JSON.stringify(curve.data.series.map(line => [line.name, line.color, line.dash, line.alpha]))
  if (curve.legend !== names || legend.children.length !== curve.data.series.length) {
    curve.legend = names
    legend.replaceChildren(...curve.data.series.map(line => {
      const button = document.createElement("button")
      button.type = "button"
      const swatch = document.createElement("span")
      swatch.className = "swatch"
      swatch.style.borderTopColor = line.color
      swatch.style.borderTopWidth = line.width + "px"
      swatch.style.opacity = line.alpha
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
  curve.root.querySelector(".picture").onclick = () => savePicture(curve)
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
    point(curve, nearest(curve.steps, curve.scale.toStep(at(event)), curve.scale))
  }
  plot.onpointerup = event => {
    const drag = curve.drag
    curve.drag = null
    if (drag && Math.abs(drag.to - drag.from) > 6) {
      setView(curve, [drag.from, drag.to].sort((a, b) => a - b).map(curve.scale.toStep))
    } else if (drag) press(curve, curve.scale.toStep(at(event)))
  }
  plot.onpointercancel = () => { curve.drag = null; draw(curve) }
  plot.onpointerleave = () => { if (!curve.drag && !plot.matches(":focus-visible")) point(curve, null) }
  plot.ondblclick = () => setView(curve, null)
  plot.onwheel = event => {
    if (!event.ctrlKey && !event.metaKey) return // the page keeps its scrolling
    event.preventDefault()
    zoom(curve, event.deltaY > 0 ? 1.25 : 0.8, curve.scale.toStep(at(event)))
  }
  plot.onkeydown = event => keyed(curve, event)
  curve.root.ontransitionend = () => draw(curve) // the theme has changed: the canvas needs its colours
}

function keyed(curve, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !curve.steps.length) return
  const steps = curve.steps
  const last = steps.length - 1
  const here = curve.cursor ?? curve.chosen
  const end = steps.indexOf(nearest(steps, curve.view ? curve.view[1] : steps[last])) + 1
  const index = here === null ? end : steps.indexOf(nearest(steps, here))
  const middle = () => here ?? curve.scale.toStep((curve.scale.left + curve.scale.right) / 2)
  const actions = {
    ArrowRight: () => event.shiftKey ? pan(curve, 0.2) : point(curve, steps[Math.min(index + 1, last)], true),
    ArrowLeft: () => event.shiftKey ? pan(curve, -0.2) : point(curve, steps[Math.max(index - 1, 0)], true),
    Home: () => point(curve, steps[0], true),
    End: () => point(curve, steps[last], true),
    "+": () => zoom(curve, 0.6, middle()),
    "=": () => zoom(curve, 0.6, middle()),
    "-": () => zoom(curve, 1 / 0.6, middle()),
    "0": () => setView(curve, null),
    Escape: () => setView(curve, null),
  }
  if (curve.data.presses) {
    const marks = curve.data.marks.length ? curve.data.marks : steps
    actions.Enter = () => press(curve, here ?? steps[last])
    actions.PageUp = () => press(curve, marks.find(x => x > (curve.chosen ?? -1)) ?? marks[marks.length - 1])
    actions.PageDown = () => press(curve, marks.findLast(x => x < (curve.chosen ?? Infinity)) ?? marks[0])
  }
  if (!(event.key in actions)) return
  event.preventDefault()
  actions[event.key]()
}

// Of sorted steps the one nearest to a step, as it looks on the axis when a scale is given.
function nearest(steps, step, scale) {
  const place = scale?.logX ? x => Math.log(Math.max(x, 0.5)) : x => x
  let best = null
  for (const x of steps) {
    if (best === null || Math.abs(place(x) - place(step)) < Math.abs(place(best) - place(step))) best = x
  }
  return best
}

function press(curve, step) {
  if (!curve.data.presses || !curve.steps.length) return draw(curve)
  const marks = curve.data.marks.length ? curve.data.marks : curve.steps
  curve.chosen = nearest(marks, step, curve.scale)
  curve.cursor = null
  curve.send(curve.chosen)
  follow(curve, curve.chosen)
}

function point(curve, step, inSight) {
  curve.cursor = step
  if (inSight) follow(curve, step)
  else draw(curve)
}

// Draws with a step in sight: a zoomed view moves to it.
function follow(curve, step) {
  const s = curve.scale
  if (!curve.view || (step >= curve.view[0] && step <= curve.view[1])) return draw(curve)
  const half = (s.f(curve.view[1]) - s.f(curve.view[0])) / 2
  setView(curve, [s.back(s.f(step) - half), s.back(s.f(step) + half)])
}

function zoom(curve, factor, around) {
  const s = curve.scale
  const [a, b] = [s.from, s.to].map(s.f)
  const middle = s.f(around)
  setView(curve, [middle - (middle - a) * factor, middle + (b - middle) * factor].map(s.back))
}

function pan(curve, share) {
  if (!curve.view) return
  const s = curve.scale
  const by = (s.f(s.to) - s.f(s.from)) * share
  setView(curve, [s.from, s.to].map(x => s.back(s.f(x) + by)))
}

function setView(curve, view) {
  const s = curve.scale
  const [first, last] = extent(curve.steps).map(s.f)
  if (view) {
    const least = Math.max((last - first) / 400, s.logX ? 0.02 : 2)
    let [a, b] = view.map(x => s.f(Math.max(x, s.logX ? 1e-3 : -Infinity)))
    if (b - a < least) [a, b] = [(a + b - least) / 2, (a + b + least) / 2]
    a = Math.max(a, first)
    view = b - a >= (last - first) * 0.999 ? null : [a, b].map(s.back)
  }
  curve.view = view
  draw(curve)
}
