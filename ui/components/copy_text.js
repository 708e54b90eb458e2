// A button that copies a text as it is, blanks, line ends and all.
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector(".copy")
  const said = parentElement.querySelector(".said")
  if (!button || !data) return
  button.textContent = data.label
  said.textContent = ""
  button.dataset.copied = ""
  button.onclick = async () => {
    const worked = await copy(data.text)
    button.textContent = said.textContent = worked ? data.words.copied : data.words.refused
    button.dataset.copied = worked ? "yes" : "no"
    setTimeout(() => { button.textContent = data.label }, 1500)
  }
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text) // pages that came by http from another machine have no clipboard
  }
}

function copyBySelection(text) {
  const area = document.createElement("textarea")
  area.value = text
  area.style.position = "fixed"
  area.style.opacity = "0"
  document.body.append(area)
  area.select()
  let worked = false
  try {
    worked = document.execCommand("copy")
  } catch {
    worked = false
  }
  area.remove()
  return worked
}
