// Saves the Plotly chart with a key as SVG or PNG: its own drawing, nothing asked from anywhere.
const SVG = "http://www.w3.org/2000/svg"
const KEPT = ["font-family", "font-size", "font-weight", "font-style", "fill", "fill-opacity", "stroke",
  "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity", "text-anchor", "white-space"]
const TEXTS = new Set(["text", "tspan"])

export default function (component) {
  const { data, parentElement } = component
  const box = parentElement.querySelector(".save")
  if (!box || !data) return
  box.setAttribute("aria-label", data.words.label)
  for (const button of box.querySelectorAll("button")) button.textContent = data.words[button.dataset.kind]
  const note = box.querySelector(".note")
  box.onclick = async event => {
    const kind = event.target.closest("button")?.dataset.kind
    if (!kind) return
    note.textContent = ""
    try {
      await save(kind, data.chart, data.name)
      box.dataset.saved = kind
    } catch (error) {
      note.textContent = data.words[error.message] ?? error.message
    }
  }
}

async function save(kind, key, name) {
  const plot = document.querySelector(`.st-key-${CSS.escape(key)} .js-plotly-plot`)
  if (!plot) throw new Error("not_yet")
  const drawing = merged(plot)
  const text = new XMLSerializer().serializeToString(drawing)
  if (kind === "svg") return hand(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`)
  hand(await painted(text, drawing), `${name}.png`)
}

// Plotly draws in layers, one <svg> over the other: they become groups of a single one.
function merged(plot) {
  const layers = [...plot.querySelectorAll("svg.main-svg")]
  if (!layers.length) throw new Error("no_drawing")
  const { width, height } = layers[0].getBoundingClientRect()
  const all = document.createElementNS(SVG, "svg")
  const size = { width: Math.ceil(width), height: Math.ceil(height) }
  for (const [name, value] of Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}` })) {
    all.setAttribute(name, value)
  }
  const ground = document.createElementNS(SVG, "rect")
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: background(plot) })) {
    ground.setAttribute(name, value)
  }
  all.append(ground)
  for (const layer of layers) {
    const copy = layer.cloneNode(true)
    inlined(layer, copy)
    for (const hovered of copy.querySelectorAll(".hoverlayer, .draglayer")) hovered.remove()
    const group = document.createElementNS(SVG, "g")
    group.append(...copy.childNodes)
    all.append(group)
  }
  here(all)
  return all
}

// What a style sheet of the page says about a piece has to stand on the piece.
function inlined(from, to) {
  const looks = getComputedStyle(from)
  for (const property of TEXTS.has(from.tagName) ? KEPT : KEPT.slice(4)) {
    const value = looks.getPropertyValue(property)
    if (value) to.style.setProperty(property, value)
  }
  if (from.style.pointerEvents) to.style.removeProperty("pointer-events")
  for (let i = 0; i < from.children.length; i++) inlined(from.children[i], to.children[i])
}

// A piece refers to a gradient or a frame by its name: in this file, and not at the page's address.
function here(all) {
  for (const piece of all.querySelectorAll("*")) {
    for (const { name, value } of [...piece.attributes]) {
      if (value.includes("url(")) piece.setAttribute(name, value.replace(/url\((["']?)[^#"')]*#/g, "url($1#"))
    }
  }
}

// The colour behind the chart: that of the nearest piece of the page that has one.
function background(piece) {
  for (let at = piece; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor
    if (color && color !== "transparent" && !/^rgba\(.*, 0\)$/.test(color)) return color
  }
  return "#ffffff"
}

// Twice as many pixels as on the screen, so that it stays sharp on a slide.
function painted(text, drawing) {
  const width = Number(drawing.getAttribute("width"))
  const height = Number(drawing.getAttribute("height"))
  return new Promise((done, failed) => {
    const picture = new Image()
    picture.onload = () => {
      const canvas = document.createElement("canvas")
      canvas.width = 2 * width
      canvas.height = 2 * height
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height)
      canvas.toBlob(blob => (blob ? done(blob) : failed(new Error("too_large"))))
    }
    picture.onerror = () => failed(new Error("no_paint"))
    picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text)
  })
}

function hand(blob, name) {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
