// All heads on one canvas: click, or arrows and Enter, choose one.
const grids = new WeakMap()
const LEFT = 34
const TOP = 22
const GAP = 5

export default function (component) {
  const { data, parentElement, setStateValue } = component
  const root = parentElement.querySelector(".heads")
  if (!root || !data) return
  let grid = grids.get(parentElement)
  if (!grid) {
    grid = { rev: -1, selected: { layer: 0, head: 0 }, focus: { layer: 0, head: 0 }, hover: null }
    grids.set(parentElement, grid)
  }
  grid.root = root
  grid.board = root.querySelector(".board")
  grid.canvas = root.querySelector("canvas")
  grid.send = value => setStateValue("selected", value)
  grid.tokens = data.tokens
  grid.first = data.first
  const identity = data.shape.join() + data.causal
  if (grid.packed !== data.weights || grid.identity !== identity) {
    grid.packed = data.weights
    grid.identity = identity
    grid.causal = data.causal
    ;[grid.layers, grid.heads, grid.n] = data.shape
    grid.weights = unpack(data)
  }
  grid.palette = ramp(data.colors)
  root.querySelector(".ramp").style.background = `linear-gradient(to right, ${data.colors.join(", ")})`
  root.querySelector(".masked").hidden = !data.causal
  grid.words = data.words
  for (const name of ["zero", "later", "save"]) root.querySelector("." + name).textContent = data.words[name]
  grid.board.setAttribute("aria-label", fill(data.words.board, { layers: grid.layers, heads: grid.heads }))
  if (data.rev !== grid.rev) {
    grid.rev = data.rev
    grid.selected = { ...data.selected }
    grid.focus = { ...data.selected }
  }
  grid.focus.layer = Math.min(grid.focus.layer, grid.layers - 1)
  grid.focus.head = Math.min(grid.focus.head, grid.heads - 1)
  listen(grid)
  if (grid.observed !== grid.board) {
    grid.observer?.disconnect()
    grid.observer = new ResizeObserver(() => paint(grid))
    grid.observer.observe(grid.board)
    grid.observed = grid.board
  }
  paint(grid)
  return () => {
    grid.observer.disconnect()
    grids.delete(parentElement)
  }
}

// base64 -> one byte a weight, (L, H, T, T); what a causal model can't see stays 0 and is never drawn.
function unpack({ weights, shape: [layers, heads, n], causal }) {
  const text = atob(weights)
  const full = new Uint8Array(layers * heads * n * n)
  let at = 0
  for (let row = 0; row < layers * heads * n; row++) {
    const length = causal ? (row % n) + 1 : n
    for (let k = 0; k < length; k++) full[row * n + k] = text.charCodeAt(at++)
  }
  return full
}

function ramp(colors) {
  const stops = colors.map(c => [1, 3, 5].map(at => parseInt(c.slice(at, at + 2), 16)))
  return Array.from({ length: 256 }, (_, v) => {
    const place = v / 255 * (stops.length - 1)
    const low = Math.min(Math.floor(place), stops.length - 2)
    return stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * (place - low)))
  })
}

function paint(grid) {
  const width = grid.board.clientWidth
  if (width < 60) return
  const started = performance.now()
  const ratio = window.devicePixelRatio || 1
  const room = Math.floor((width - LEFT) / grid.heads) - GAP
  grid.cell = Math.floor(Math.max(12, Math.min(room, 130, Math.max(34, 560 / grid.layers - GAP))))
  const w = LEFT + grid.heads * (grid.cell + GAP)
  const h = TOP + grid.layers * (grid.cell + GAP)
  const style = getComputedStyle(grid.root)
  grid.ink = { text: style.color, family: style.fontFamily, page: style.getPropertyValue("--st-background-color").trim(),
    panel: style.getPropertyValue("--st-secondary-background-color").trim() }
  const picture = document.createElement("canvas")
  picture.width = Math.round(w * ratio)
  picture.height = Math.round(h * ratio)
  const pen = picture.getContext("2d")
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  paintLabels(grid, pen)
  const stamp = hatch(grid, ratio)
  for (let layer = 0; layer < grid.layers; layer++)
    for (let head = 0; head < grid.heads; head++) paintHead(grid, pen, stamp, layer, head, ratio)
  grid.picture = picture
  grid.canvas.width = picture.width
  grid.canvas.height = picture.height
  grid.canvas.style.width = w + "px"
  grid.canvas.style.height = h + "px"
  grid.root.dataset.painted = `${grid.layers}x${grid.heads}x${grid.n}`
  grid.root.dataset.paintMs = (performance.now() - started).toFixed(0)
  frame(grid)
}

function paintLabels(grid, pen) {
  pen.fillStyle = grid.ink.text
  const page = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16 // larger on a projector
  pen.font = `${grid.cell < 30 ? 12 : Math.round((13 * page) / 16)}px ${grid.ink.family}`
  pen.textAlign = "center"
  pen.textBaseline = "middle"
  for (let head = 0; head < grid.heads; head++) {
    const words = grid.cell < 24 ? String(head + 1) : `H${head + 1}`
    pen.fillText(words, LEFT + head * (grid.cell + GAP) + grid.cell / 2, TOP / 2)
  }
  pen.textAlign = "right"
  for (let layer = 0; layer < grid.layers; layer++)
    pen.fillText(`L${layer + 1}`, LEFT - 8, TOP + layer * (grid.cell + GAP) + grid.cell / 2)
}

// The ground under every map: shows through where a causal model can't see.
function hatch(grid, ratio) {
  const stamp = document.createElement("canvas")
  stamp.width = stamp.height = Math.round(grid.cell * ratio)
  const pen = stamp.getContext("2d")
  pen.fillStyle = grid.ink.panel
  pen.fillRect(0, 0, stamp.width, stamp.height)
  pen.strokeStyle = "rgba(128, 136, 145, 0.5)"
  pen.lineWidth = ratio
  const gap = Math.max(4, grid.cell / 12) * ratio
  pen.beginPath()
  for (let at = -stamp.width; at < stamp.width; at += gap) {
    pen.moveTo(at, stamp.height)
    pen.lineTo(at + stamp.height, 0)
  }
  pen.stroke()
  return stamp
}

// One map in device pixels. Where a pixel covers several weights it shows the largest, so thin lines survive.
function paintHead(grid, pen, stamp, layer, head, ratio) {
  const { n, weights, palette, causal } = grid
  const size = stamp.width
  const image = new ImageData(size, size)
  const base = (layer * grid.heads + head) * n * n
  const first = Array.from({ length: size + 1 }, (_, p) => Math.floor(p * n / size))
  for (let y = 0; y < size; y++) {
    const q0 = first[y]
    const q1 = Math.max(first[y + 1], q0 + 1)
    for (let x = 0; x < size; x++) {
      const k0 = first[x]
      if (causal && k0 > q1 - 1) break
      const k1 = Math.max(first[x + 1], k0 + 1)
      let most = 0
      for (let q = q0; q < q1; q++)
        for (let k = k0; k < k1; k++) {
          const v = weights[base + q * n + k]
          if (v > most) most = v
        }
      const at = (y * size + x) * 4
      const c = palette[most]
      image.data[at] = c[0]
      image.data[at + 1] = c[1]
      image.data[at + 2] = c[2]
      image.data[at + 3] = 255
    }
  }
  const map = document.createElement("canvas")
  map.width = map.height = size
  map.getContext("2d").putImageData(image, 0, 0)
  const [x, y] = corner(grid, layer, head)
  pen.drawImage(stamp, x, y, grid.cell, grid.cell)
  pen.drawImage(map, x, y, grid.cell, grid.cell)
}

function corner(grid, layer, head) {
  return [LEFT + head * (grid.cell + GAP), TOP + layer * (grid.cell + GAP)]
}

// The picture with the frames of the chosen, the focused and the touched head.
function frame(grid) {
  if (!grid.picture) return // too narrow yet to be painted
  const ratio = window.devicePixelRatio || 1
  const pen = grid.canvas.getContext("2d")
  pen.setTransform(1, 0, 0, 1, 0, 0)
  pen.clearRect(0, 0, grid.canvas.width, grid.canvas.height)
  pen.drawImage(grid.picture, 0, 0)
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  const box = ({ layer, head }, width, dash) => {
    const [x, y] = corner(grid, layer, head)
    pen.setLineDash(dash)
    pen.lineWidth = width
    pen.strokeStyle = grid.ink.text
    pen.strokeRect(x - 1.5, y - 1.5, grid.cell + 3, grid.cell + 3)
  }
  if (grid.hover) box(grid.hover, 1, [])
  if (grid.board.matches(":focus-visible")) box(grid.focus, 2, [3, 2])
  if (grid.selected.layer < grid.layers && grid.selected.head < grid.heads) box(grid.selected, 3, [])
  const { layer, head } = grid.selected
  grid.root.dataset.selected = `${layer},${head}`
  grid.root.dataset.focus = `${grid.focus.layer},${grid.focus.head}`
  const values = { layers: grid.layers, heads: grid.heads, layer: layer + 1, head: head + 1 }
  grid.canvas.setAttribute("aria-label", fill(grid.words.picture, values))
  grid.canvas.setAttribute("role", "img") // not before it has a name
}

function say(grid, spot) {
  const readout = grid.root.querySelector(".readout")
  const { layer, head } = spot ?? grid.selected
  const values = { layer: layer + 1, head: head + 1 }
  let sentence = spot ? grid.words.here : grid.words.chosen
  if (spot && spot.query !== undefined) {
    const name = i => `${grid.first + i} ${grid.tokens[i] ?? ""}`
    const at = ((layer * grid.heads + head) * grid.n + spot.query) * grid.n + spot.key
    Object.assign(values, { query: name(spot.query), key: name(spot.key), weight: (grid.weights[at] / 255).toFixed(2) })
    sentence = grid.causal && spot.key > spot.query ? grid.words.unseen : grid.words.weight
  }
  const words = fill(sentence, values)
  if (readout.textContent !== words) readout.textContent = words
}

function spotAt(grid, event) {
  const rect = grid.canvas.getBoundingClientRect()
  const pitch = grid.cell + GAP
  const [x, y] = [event.clientX - rect.left - LEFT, event.clientY - rect.top - TOP]
  const [head, layer] = [Math.floor(x / pitch), Math.floor(y / pitch)]
  if (head < 0 || layer < 0 || head >= grid.heads || layer >= grid.layers) return null
  const [inX, inY] = [x - head * pitch, y - layer * pitch]
  if (inX >= grid.cell || inY >= grid.cell) return { layer, head }
  return { layer, head, query: Math.floor(inY / grid.cell * grid.n), key: Math.floor(inX / grid.cell * grid.n) }
}

function choose(grid, { layer, head }) {
  grid.selected = { layer, head }
  grid.focus = { layer, head }
  frame(grid)
  grid.send({ layer, head })
}

function listen(grid) {
  grid.board.onpointermove = event => {
    grid.hover = spotAt(grid, event)
    frame(grid)
    say(grid, grid.hover)
  }
  grid.board.onpointerleave = () => {
    grid.hover = null
    frame(grid)
    say(grid, null)
  }
  grid.board.onclick = event => {
    const spot = spotAt(grid, event)
    if (spot) choose(grid, spot)
  }
  grid.board.onfocus = grid.board.onblur = () => frame(grid)
  grid.board.onkeydown = event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const { layer, head } = grid.focus
    const moves = {
      ArrowRight: { layer, head: Math.min(head + 1, grid.heads - 1) },
      ArrowLeft: { layer, head: Math.max(head - 1, 0) },
      ArrowDown: { layer: Math.min(layer + 1, grid.layers - 1), head },
      ArrowUp: { layer: Math.max(layer - 1, 0), head },
      Home: { layer, head: 0 },
      End: { layer, head: grid.heads - 1 },
    }
    if (event.key in moves) {
      grid.focus = moves[event.key]
      frame(grid)
      say(grid, grid.focus)
    } else if (event.key === "Enter" || event.key === " ") choose(grid, grid.focus)
    else return
    event.preventDefault()
  }
  grid.root.querySelector(".save").onclick = () => save(grid)
  say(grid, grid.hover)
}

// The picture as a file, on the page's own ground, without asking anybody.
function save(grid) {
  const sheet = document.createElement("canvas")
  sheet.width = grid.picture.width
  sheet.height = grid.picture.height
  const pen = sheet.getContext("2d")
  pen.fillStyle = grid.ink.page
  pen.fillRect(0, 0, sheet.width, sheet.height)
  pen.drawImage(grid.picture, 0, 0)
  sheet.toBlob(blob => {
    const link = document.createElement("a")
    link.href = URL.createObjectURL(blob)
    link.download = `attention-${grid.layers}x${grid.heads}-heads-${grid.n}-tokens.png`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 1000)
  }, "image/png")
}
