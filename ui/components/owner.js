// Keeps one random word in this browser, so that a person is still the owner of their runs after a reload.
const NAME = "loupe-owner"

export default function ({ data, parentElement, setStateValue }) {
  let kept = null
  try {
    kept = window.localStorage.getItem(NAME)
    if (!kept) {
      kept = data.proposal
      window.localStorage.setItem(NAME, kept)
    }
  } catch {
    return // storage is switched off: the proposal holds until the page is reloaded
  }
  parentElement.querySelector("span").dataset.agreed = String(kept === data.current)
  if (kept !== data.current || data.asks) setStateValue("token", kept)
}
