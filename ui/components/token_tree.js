// What can come next, as a tree. One tab stop; arrows walk, Enter or a click choose, → on a leaf lets it grow.
const trees = new WeakMap()

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const root = parentElement.querySelector(".tree")
  if (!root || !data) return
  const tree = trees.get(parentElement) ?? { focus: "" }
  trees.set(parentElement, tree)
  const held = root.getRootNode().activeElement
  const hadFocus = held && root.contains(held)
  const old = root.querySelector(".scroll")
  const place = old ? [old.scrollLeft, old.scrollTop] : null

  root.setAttribute("aria-label", data.label)
  for (const name of ["line", "beam", "model"]) root.style.setProperty(`--${name}`, data.colors[name])
  const scroll = make("div", "scroll")
  const top = make("ul", "")
  top.append(branch(data.root, data, true))
  scroll.append(top)
  root.replaceChildren(scroll)
  if (place) [scroll.scrollLeft, scroll.scrollTop] = place
  root.dataset.nodes = String(root.querySelectorAll(".node").length)
  root.dataset.chosen = data.chosen

  const nodes = [...root.querySelectorAll(".node")]
  const at = path => nodes.find(node => node.dataset.path === path)
  const here = at(tree.focus) ?? at(data.chosen) ?? nodes[0]
  nodes.forEach(node => { node.tabIndex = node === here ? 0 : -1 })
  if (hadFocus && here) here.focus({ preventScroll: true })

  const send = (path, grow) => setTriggerValue("pressed", { path: path === "" ? [] : path.split(",").map(Number), grow })
  root.onclick = event => {
    if (event.detail > 1) return
    const plus = event.target.closest(".grow")
    const node = plus ? plus.previousElementSibling : event.target.closest(".node")
    if (!node) return
    tree.focus = node.dataset.path
    send(node.dataset.path, Boolean(plus))
  }
  root.onkeydown = event => {
    const node = event.target.closest(".node")
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return
    const i = nodes.indexOf(node)
    const item = node.parentElement
    const first = item.querySelector(":scope > ul > li > .node")
    if (event.key === "ArrowRight" && !first && item.querySelector(":scope > .grow")) {
      event.preventDefault()
      tree.focus = node.dataset.path
      send(node.dataset.path, true)
      return
    }
    const to = {
      ArrowDown: nodes[i + 1], ArrowUp: nodes[i - 1], Home: nodes[0], End: nodes[nodes.length - 1],
      ArrowRight: first, ArrowLeft: item.parentElement.parentElement.querySelector(":scope > .node"),
    }
    if (!(event.key in to)) return
    event.preventDefault()
    const next = to[event.key]
    if (!next) return
    node.tabIndex = -1
    next.tabIndex = 0
    next.focus()
    tree.focus = next.dataset.path
  }
  return () => trees.delete(parentElement)
}

function branch(node, data, isRoot) {
  const item = make("li", "")
  item.append(box(node, data, isRoot))
  if (node.grows) {
    const plus = make("button", "grow", "+")
    plus.type = "button"
    plus.tabIndex = -1
    plus.title = data.words.expand
    plus.setAttribute("aria-label", fill(data.words.expand_node, node))
    item.append(plus)
  }
  if (node.kids.length) {
    const list = make("ul", "")
    list.append(...node.kids.map(kid => branch(kid, data, false)))
    item.append(list)
  }
  return item
}

function box(node, data, isRoot) {
  const button = make("button", "node" + (node.beam ? " beam" : "") + (isRoot ? " root-node" : ""))
  button.type = "button"
  button.dataset.path = node.path.join(",")
  button.setAttribute("aria-pressed", String(button.dataset.path === data.chosen))
  const text = document.createElement("bdi")
  text.className = "text"
  if (node.color) text.style.backgroundColor = node.color
  for (const [piece, isMark] of node.parts) text.append(make("span", isMark ? "mark" : "", piece))
  button.append(text, make("span", "own", node.prob))
  const whole = make("span", "whole")
  whole.append(make("span", "", node.whole))
  if (node.beam || node.ended) whole.append(make("span", "tag", [node.beam && data.words.beam, node.ended && data.words.end].filter(Boolean).join(" · ")))
  button.append(whole)
  if (!isRoot) {
    const share = make("span", "share")
    share.style.width = `${100 * node.share}%`
    button.append(share)
  }
  button.setAttribute("aria-label", node.says)
  return button
}

function make(kind, name, text) {
  const element = document.createElement(kind)
  if (name) element.className = name
  if (text !== undefined) element.textContent = text
  return element
}
