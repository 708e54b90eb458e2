// One merge as a sum of chips. Nothing to press: it is a picture.
export default function (component) {
  const { data, parentElement } = component
  const root = parentElement.querySelector(".merge")
  if (!root || !data) return
  root.setAttribute("aria-label", data.label)
  root.setAttribute("role", "img") // not before it has a name
  root.dataset.ids = data.pieces.map(piece => piece.id).join(",")
  const drawn = document.createDocumentFragment()
  data.pieces.forEach((piece, i) => {
    if (i) drawn.append(make("span", "sign", i === data.pieces.length - 1 ? "=" : "+"))
    const box = make("span", i === data.pieces.length - 1 ? "piece new" : "piece")
    const chip = make("bdi", "chip")
    chip.style.backgroundColor = piece.color
    for (const [text, isMark] of piece.parts) chip.append(make("span", isMark ? "mark" : "", text))
    box.append(chip, make("span", "id", `id ${piece.id}`))
    drawn.append(box)
  })
  root.replaceChildren(drawn)
}

function make(kind, name, text) {
  const element = document.createElement(kind)
  if (name) element.className = name
  if (text !== undefined) element.textContent = text
  return element
}
