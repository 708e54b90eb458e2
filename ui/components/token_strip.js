// Tokens as chips: one tab stop, arrows walk, Enter, Space or a click choose.
const strips = new WeakMap()

export default function (component) {
  const { data, parentElement, setStateValue, setTriggerValue } = component
  const root = parentElement.querySelector(".strip")
  if (!root || !data) return
  let strip = strips.get(parentElement)
  if (!strip) {
    strip = { selected: null, focus: 0, rev: -1, drawn: "", chips: [] }
    strips.set(parentElement, strip)
  }
  strip.root = root
  strip.send = value => (data.presses ? setTriggerValue("pressed", value) : setStateValue("selected", value))
  root.setAttribute("aria-label", data.label)

  const wanted = JSON.stringify([data.groups, data.words])
  if (strip.drawn !== wanted || !root.isConnected || !root.firstChild) {
    strip.words = data.words
    draw(strip, data.groups)
    strip.drawn = wanted
  }
  if (data.rev !== strip.rev) {
    strip.rev = data.rev
    strip.selected = data.selected
    if (data.selected !== null && data.selected !== undefined) strip.focus = data.selected
  }
  if (strip.focus >= strip.chips.length) strip.focus = 0
  mark(strip)
  root.onclick = event => {
    const chip = event.target.closest(".chip")
    if (chip) choose(strip, Number(chip.dataset.index))
  }
  root.onkeydown = event => walk(strip, event)
  root.onfocusin = null
  return () => strips.delete(parentElement)
}

function draw(strip, groups) {
  const held = strip.root.getRootNode().activeElement
  const hadFocus = held && strip.root.contains(held)
  strip.chips = []
  const pieces = document.createDocumentFragment()
  for (const group of groups) {
    const box = document.createElement("span")
    box.className = group.chips.length > 1 ? "group several" : "group"
    if (group.whole !== undefined) {
      const whole = document.createElement("bdi")
      whole.className = "whole"
      whole.textContent = group.whole
      box.append(whole)
      box.dataset.tokens = String(group.chips.length)
    }
    for (const chip of group.chips) box.append(makeChip(strip, chip))
    pieces.append(box)
  }
  if (!strip.chips.length) {
    const note = document.createElement("span")
    note.className = "empty"
    note.textContent = strip.words.none
    pieces.append(note)
  }
  strip.root.replaceChildren(pieces)
  strip.root.dataset.count = String(strip.chips.length)
  if (hadFocus) strip.chips[Math.min(strip.focus, strip.chips.length - 1)]?.focus()
}

function makeChip(strip, chip) {
  const button = document.createElement("button")
  button.type = "button"
  button.className = "chip" + (chip.hidden ? " hidden" : "") + (chip.greyed ? " greyed" : "")
  button.dataset.index = String(chip.i)
  button.dataset.id = String(chip.id)
  button.style.backgroundColor = chip.color
  if (chip.color[0] === "#" && !chip.greyed) {
    button.classList.add("solid")
    button.style.color = inkOn(chip.color)
  }
  const text = document.createElement("bdi")
  text.className = "text"
  for (const [piece, isMark] of chip.parts) {
    const span = document.createElement("span")
    if (isMark) span.className = "mark"
    span.textContent = piece
    text.append(span)
  }
  button.append(text)
  if (chip.value !== undefined) {
    const value = document.createElement("span")
    value.className = "value"
    value.textContent = chip.value
    button.append(value)
  }
  const shown = chip.parts.map(part => part[0]).join("")
  button.title = fill(strip.words.title, chip)
  const notes = [fill(strip.words.token, chip), shown || strip.words.empty, fill(strip.words.id, chip)]
  if (chip.value !== undefined) notes.push(chip.value)
  if (chip.hidden) notes.push(strip.words.hidden)
  if (chip.greyed) notes.push(strip.words.greyed)
  button.setAttribute("aria-label", notes.join(", "))
  strip.chips.push(button)
  return button
}

// Black or white, whichever stands out more on an opaque colour (WCAG relative luminance).
function inkOn(hex) {
  const light = [1, 3, 5].map(at => {
    const c = parseInt(hex.slice(at, at + 2), 16) / 255
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  })
  const luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
  return luminance > 0.179 ? "#000000" : "#FFFFFF"
}

function mark(strip) {
  strip.chips.forEach((chip, i) => {
    chip.setAttribute("aria-pressed", String(i === strip.selected))
    chip.tabIndex = i === strip.focus ? 0 : -1
  })
  const held = strip.chips[strip.selected]
  for (const box of strip.root.querySelectorAll(".several")) box.classList.toggle("chosen", box.contains(held))
  strip.root.dataset.selected = strip.selected === null || strip.selected === undefined ? "" : String(strip.selected)
}

function choose(strip, index) {
  strip.selected = strip.focus = index
  mark(strip)
  strip.send(index)
}

function walk(strip, event) {
  const last = strip.chips.length - 1
  const chip = event.target.closest(".chip")
  if (last < 0 || !chip || event.ctrlKey || event.metaKey || event.altKey) return
  const at = Number(chip.dataset.index)
  const line = step => sideways(strip, at, step)
  const moves = {
    ArrowRight: () => Math.min(at + 1, last),
    ArrowLeft: () => Math.max(at - 1, 0),
    ArrowDown: () => line(1),
    ArrowUp: () => line(-1),
    Home: () => 0,
    End: () => last,
  }
  if (!(event.key in moves)) return
  event.preventDefault()
  strip.focus = moves[event.key]()
  mark(strip)
  strip.chips[strip.focus].focus()
}

// The chip on the next line, nearest in x.
function sideways(strip, at, step) {
  const here = strip.chips[at].getBoundingClientRect()
  let found = at
  let best = Infinity
  for (let i = at + step; i >= 0 && i < strip.chips.length; i += step) {
    const box = strip.chips[i].getBoundingClientRect()
    const down = (box.top - here.top) * step
    if (down < here.height / 2) continue
    const cost = down * 1000 + Math.abs(box.left + box.width / 2 - here.left - here.width / 2)
    if (cost < best) { best = cost; found = i }
    if (down > 3 * here.height) break
  }
  return found
}
