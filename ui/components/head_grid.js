// All heads on one canvas: click, or arrows and Enter, choose one.
const grids = new WeakMap()
const LEFT = 34
const TOP = 22
const GAP = 5
const APART = 14 // between two blocks of layers that stand side by side
const HIGH = 520 // pixels that a picture of many layers should not exceed
const MANY = 12 // layers; up to so many stand one under the other

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
  const identity = data.shape.join() + data.causal + data.windows
  if (grid.packed !== data.weights || grid.identity !== identity) {
    grid.packed = data.weights
    grid.identity = identity
    unpack(data).then(weights => {
      if (grid.packed !== data.weights || grid.identity !== identity) return // others came meanwhile
      grid.weights = weights
      grid.causal = data.causal
      grid.windows = data.windows
      ;[grid.layers, grid.heads, grid.n] = data.shape
      show(grid)
    })
  }
  grid.palette = ramp(data.colors, data.stops)
  const stops = data.colors.map((color, i) => `${color} ${data.stops[i] * 100}%`)
  root.querySelector(".ramp").style.background = `linear-gradient(to right, ${stops.join(", ")})`
  root.querySelector(".masked").hidden = !data.causal
  grid.words = data.words
  for (const name of ["zero", "save"]) root.querySelector("." + name).textContent = data.words[name]
  const short = data.windows.some(window => window > 0)
  root.querySelector(".later").textContent = short ? data.words.far : data.words.later
  const [layers, heads] = data.shape
  if (!grid.weights) Object.assign(grid, { layers, heads }) // for the keys, until the maps are unpacked
  grid.board.setAttribute("aria-label", fill(data.words.board, { layers, heads }))
  if (data.rev !== grid.rev) {
    grid.rev = data.rev
    grid.selected = { ...data.selected }
    grid.focus = { ...data.selected }
  }
  grid.focus.layer = Math.min(grid.focus.layer, layers - 1)
  grid.focus.head = Math.min(grid.focus.head, heads - 1)
  listen(grid)
  if (grid.observed !== grid.board) {
    grid.observer?.disconnect()
    grid.observer = new ResizeObserver(() => paint(grid))
    grid.observer.observe(grid.board)
    grid.observed = grid.board
  }
  show(grid)
  return () => {
    grid.observer.disconnect()
    grids.delete(parentElement)
  }
}

// base64 -> one byte a weight, (L, H, T, T); what a causal model can't see stays 0 and is never drawn.
async function unpack({ weights, shape: [layers, heads, n], causal }) {
  const bytes = Uint8Array.from(atob(weights), letter => letter.charCodeAt(0))
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))
  const flat = new Uint8Array(await new Response(stream).arrayBuffer())
  if (!causal) return flat
  const full = new Uint8Array(layers * heads * n * n)
  let at = 0
  for (let map = 0; map < layers * heads; map++)
    for (let k = 0; k < n; k++) for (let q = k; q < n; q++) full[(map * n + q) * n + k] = flat[at++]
  return full
}

function show(grid) {
  if (!grid.weights) return // still being unpacked
  paint(grid)
  reveal(grid, grid.selected.layer)
  say(grid, grid.hover)
}

// A layer of a picture that scrolls comes into sight.
function reveal(grid, layer) {
  if (!grid.picture) return
  const y = corner(grid, layer, 0)[1]
  const [top, bottom] = [y - TOP, y + grid.cell + GAP]
  if (top < grid.board.scrollTop) grid.board.scrollTop = top
  else if (bottom > grid.board.scrollTop + grid.board.clientHeight)
    grid.board.scrollTop = bottom - grid.board.clientHeight
}

// The colour of each byte: `stops` say at which share of 1 each of the colours stands.
function ramp(colors, places) {
  const stops = colors.map(c => [1, 3, 5].map(at => parseInt(c.slice(at, at + 2), 16)))
  return Array.from({ length: 256 }, (_, v) => {
    const share = v / 255
    let low = 0
    while (low < stops.length - 2 && places[low + 1] <= share) low++
    const along = (share - places[low]) / (places[low + 1] - places[low])
    return stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * along))
  })
}

function paint(grid) {
  const width = grid.board.clientWidth
  if (width < 60 || !grid.weights) return
  const started = performance.now()
  const ratio = window.devicePixelRatio || 1
  arrange(grid, width)
  const w = (grid.across - 1) * APART + grid.across * (LEFT + grid.heads * (grid.cell + GAP))
  const h = TOP + grid.down * (grid.cell + GAP)
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

// How large a map is, and how many blocks of layers stand side by side, as large as the room allows.
function arrange(grid, width) {
  const fit = across => {
    const down = Math.ceil(grid.layers / across)
    const room = (width - (across - 1) * APART - across * LEFT) / (across * grid.heads) - GAP
    return { across, down, cell: Math.floor(Math.min(room, 130, HIGH / down - GAP)) }
  }
  let best = fit(1)
  if (grid.layers <= MANY) {
    const room = Math.floor((width - LEFT) / grid.heads) - GAP
    best.cell = Math.max(12, Math.min(room, 130, Math.max(34, 560 / grid.layers - GAP)))
  } else {
    for (const across of [2, 3, 4]) if (fit(across).cell > best.cell) best = fit(across)
    const alone = Math.min(34, (width - LEFT) / grid.heads - GAP)
    if (best.cell < 20) best = { across: 1, down: grid.layers, cell: Math.max(12, alone) } // narrow: it scrolls
  }
  best.cell = Math.floor(best.cell)
  Object.assign(grid, best)
}

function paintLabels(grid, pen) {
  pen.fillStyle = grid.ink.text
  const page = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16 // larger on a projector
  pen.font = `${grid.cell < 30 ? 12 : Math.round((13 * page) / 16)}px ${grid.ink.family}`
  pen.textAlign = "center"
  pen.textBaseline = "middle"
  for (let block = 0; block < grid.across; block++)
    for (let head = 0; head < grid.heads; head++) {
      const words = grid.cell < 24 ? String(head + 1) : `H${head + 1}`
      pen.fillText(words, corner(grid, block * grid.down, head)[0] + grid.cell / 2, TOP / 2)
    }
  pen.textAlign = "right"
  for (let layer = 0; layer < grid.layers; layer++) {
    const [x, y] = corner(grid, layer, 0)
    pen.fillText(`L${layer + 1}`, x - 8, y + grid.cell / 2)
  }
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
  const reach = (causal && grid.windows[layer]) || n // a query sees so many tokens, itself among them
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
      if (q0 - (k1 - 1) >= reach) continue
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
  const pitch = grid.cell + GAP
  const block = Math.floor(layer / grid.down)
  const left = block * (LEFT + grid.heads * pitch + APART) + LEFT
  return [left + head * pitch, TOP + (layer % grid.down) * pitch]
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
  grid.root.dataset.blocks = grid.across
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
    sentence = grid.words.weight
    if (grid.causal && spot.key > spot.query) sentence = grid.words.unseen
    else if (grid.causal && grid.windows[layer] && spot.query - spot.key >= grid.windows[layer])
      sentence = fill(grid.words.beyond, { window: grid.windows[layer] })
  }
  const words = fill(sentence, values)
  if (readout.textContent !== words) readout.textContent = words
}

function spotAt(grid, event) {
  const rect = grid.canvas.getBoundingClientRect()
  const pitch = grid.cell + GAP
  const broad = LEFT + grid.heads * pitch + APART
  const block = Math.floor((event.clientX - rect.left) / broad)
  const [x, y] = [event.clientX - rect.left - block * broad - LEFT, event.clientY - rect.top - TOP]
  const [head, row] = [Math.floor(x / pitch), Math.floor(y / pitch)]
  const layer = block * grid.down + row
  if (block < 0 || block >= grid.across || head < 0 || head >= grid.heads) return null
  if (row < 0 || row >= grid.down || layer >= grid.layers) return null
  const [inX, inY] = [x - head * pitch, y - row * pitch]
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
    if (!grid.picture) return
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
    const spot = grid.picture && spotAt(grid, event)
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
      reveal(grid, grid.focus.layer)
      say(grid, grid.focus)
    } else if (event.key === "Enter" || event.key === " ") choose(grid, grid.focus)
    else return
    event.preventDefault()
  }
  grid.root.querySelector(".save").onclick = () => save(grid)
}

// The picture as a file, on the page's own ground, without asking anybody.
function save(grid) {
  const sheet = document.createElement("canvas")
  if (!grid.picture) return
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
