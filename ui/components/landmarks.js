// The way past the sidebar for the keyboard, and what Streamlit's folded menu lacks for screen readers: its list
// of pages by section holds more than entries, so it is no list. A formula wider than a telephone scrolls: with keys
// too. Where the server is gone, Streamlit tells everybody, in English, to type a command that is not Loupe's.
function sayLost([title, words]) {
  for (const code of document.querySelectorAll("[role=dialog] [data-testid=stErrorCodeBlock]")) {
    if (code.style.display === "none" || !/streamlit run/.test(code.textContent)) continue
    code.style.display = "none"
    code.previousElementSibling.textContent = words
    code.closest("[role=dialog]").querySelector("h2").textContent = title
  }
}

// The folded menu of a phone is unfolded by a button that is English, too.
function sayMore([more, fewer]) {
  for (const button of document.querySelectorAll("[data-testid=stSidebarNavViewButton]")) {
    if (/^View \d+ more$/.test(button.textContent)) button.textContent = more
    else if (/^View less$/.test(button.textContent)) button.textContent = fewer
  }
}

function mend({ lost, menu }) {
  sayLost(lost)
  sayMore(menu)
  for (const formula of document.querySelectorAll(".katex-display")) {
    const wide = formula.scrollWidth > formula.clientWidth
    if (wide) formula.setAttribute("tabindex", "0")
    else if (formula.hasAttribute("tabindex")) formula.removeAttribute("tabindex")
  }
  for (const list of document.querySelectorAll("[data-testid=stSidebarNavItems]")) {
    if (![...list.children].some((child) => child.tagName !== "LI")) continue
    list.setAttribute("role", "presentation")
    for (const entry of list.querySelectorAll("li")) entry.setAttribute("role", "presentation")
  }
}

export default function ({ data, parentElement }) {
  const skip = parentElement.querySelector(".skip")
  skip.textContent = data.words
  skip.onclick = () => {
    const main = document.querySelector("[data-testid=stMain]")
    main.setAttribute("tabindex", "-1")
    main.focus()
  }
  mend(data)
  let waits = 0 // the sidebar itself may be drawn anew: look once a frame, wherever something changed
  const soon = () => {
    waits ||= requestAnimationFrame(() => {
      waits = 0
      mend(data)
    })
  }
  const watch = new MutationObserver(soon)
  watch.observe(document.body, { childList: true, subtree: true })
  window.addEventListener("resize", soon)
  document.fonts.addEventListener("loadingdone", soon) // formulas change their size with their fonts
  return () => {
    watch.disconnect()
    window.removeEventListener("resize", soon)
    document.fonts.removeEventListener("loadingdone", soon)
  }
}
