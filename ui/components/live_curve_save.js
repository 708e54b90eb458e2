// ---- the picture as a file -------------------------------------------------------------------------------------

// The canvas as it stands, with its titles and its legend, on the colour of the page.
function savePicture(curve) {
  const { canvas, data, ink, plot } = curve
  const ratio = canvas.width / plot.clientWidth
  const [width, height, head] = [plot.clientWidth, plot.clientHeight, 52]
  const sheet = document.createElement("canvas")
  sheet.width = canvas.width
  sheet.height = canvas.height + (head + 24) * ratio
  const pen = sheet.getContext("2d")
  pen.scale(ratio, ratio)
  pen.fillStyle = ink.page
  pen.fillRect(0, 0, width, height + head + 24)
  pen.font = `13px ${ink.family}`
  pen.textBaseline = "middle"
  let x = 8
  for (const line of data.series.filter(each => !curve.off.has(each.name))) {
    pen.globalAlpha = line.alpha
    pen.strokeStyle = line.color
    pen.lineWidth = line.width
    pen.setLineDash(line.dash)
    stroke(pen, [x, 14], [x + 24, 14])
    pen.globalAlpha = 1
    pen.fillStyle = ink.text
    pen.fillText(line.name, x + 30, 14)
    x += 50 + pen.measureText(line.name).width
  }
  pen.fillText(data.yTitle, 8, 38)
  pen.textAlign = "right"
  if (data.perplexityTitle) pen.fillText(data.perplexityTitle, width - 8, 38)
  pen.textAlign = "center"
  pen.fillText(data.xTitle, width / 2, height + head + 10)
  pen.drawImage(canvas, 0, head, width, height)
  sheet.toBlob(blob => {
    const link = document.createElement("a")
    link.href = URL.createObjectURL(blob)
    link.download = "curve.png"
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
    curve.root.dataset.saved = "png"
  })
}
