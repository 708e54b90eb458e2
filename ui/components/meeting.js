// Where a component's code, which stands on the page once, and the component itself find each other, whichever
// of them comes first. Named after what the code says, so that a page that is still open when Loupe has been
// renewed takes the new one.
function meeting(name) {
  const all = (globalThis.loupeCode ??= {})
  if (!all[name]) {
    const one = (all[name] = { run: null })
    one.come = new Promise(resolve => {
      one.bring = run => {
        one.run ??= run // the first keeps what it knows of the pictures: zoom, cursor
        resolve()
      }
    })
  }
  return all[name]
}
