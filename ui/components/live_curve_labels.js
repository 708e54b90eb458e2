// ---- where the words of the horizontal lines stand ------------------------------------------------------------

const LABEL_HEIGHT = 17
const STRANGER = 60 // the cost of words nearer to a strange line than to their own: more than that of a curve
const LEVELS = [-1, 1, -2, 2, -3, 3, -4, 4, -5] // rows above and below the line; from the second on with a leader

// Places labels so that none lies on another, each nearest to its own line, and as few as possible on the curves.
// labels: [{key, width, y, below}]; area: {left, right, top, bottom}; busy: [[x, y]] where curves run;
// slots: the places of the last time by key, which are kept while they serve. Gives [{x, y, level}], y the top.
function placeLabels(labels, area, busy, slots = {}) {
  const placed = []
  for (const label of [...labels].sort((a, b) => a.y - b.y)) {
    let best = null
    for (const place of places(label, area)) {
      place.cost -= place.slot === slots[label.key] ? 4 : 0
      place.cost += cost(place, label, labels, placed, area, busy)
      if (!best || place.cost < best.cost) best = place
    }
    slots[label.key] = best.slot
    placed.push({ ...best, label })
  }
  return labels.map(label => placed.find(place => place.label === label))
}

function sameHeight(one, other) {
  return Math.abs(one.y - other.y) < 2
}

function places(label, area) {
  const width = Math.min(label.width, area.right - area.left - 16)
  const columns = [area.right - 8 - width, area.left + 8, (area.left + area.right - width) / 2]
  return LEVELS.flatMap(level => columns.map((x, column) => {
    const rows = Math.abs(level)
    const y = level < 0 ? label.y - 4 - rows * LABEL_HEIGHT : label.y + 4 + (rows - 1) * LABEL_HEIGHT
    const unlike = (level > 0) === Boolean(label.below) ? 0 : 0.5
    return { x, y, width, level, slot: `${level}:${column}`, cost: column + unlike + (rows - 1) * 8 }
  }))
}

function cost(place, label, labels, placed, area, busy) {
  const [x0, x1, y0, y1] = [place.x, place.x + place.width, place.y, place.y + LABEL_HEIGHT]
  let sum = y0 < area.top - 8 || y1 > area.bottom ? 200 : 0
  for (const other of placed) {
    const apart = other.x >= x1 + 6 || other.x + other.width + 6 <= x0 || other.y >= y1 || other.y + LABEL_HEIGHT <= y0
    if (!apart) sum += 1000
  }
  const middle = (y0 + y1) / 2
  for (const other of labels) {
    if (other === label) continue
    if (other.y > y0 + 1 && other.y < y1 - 1) sum += 10
    const [near, far] = [Math.abs(other.y - middle), Math.abs(label.y - middle)]
    if (near < far && !sameHeight(other, label)) sum += STRANGER // it would be read as the other line's words
  }
  for (const [x, y] of busy) if (x > x0 - 2 && x < x1 + 2 && y > y0 && y < y1) sum += 1
  return sum
}

// Points on the curves in sight, a few pixels apart.
function busyPoints(curve) {
  const s = curve.scale
  const points = []
  for (const line of curve.data.series) {
    if (curve.off.has(line.name)) continue
    let before = null
    line.y.forEach((y, i) => {
      const here = y === null || (s.logX && line.x[i] <= 0) || (s.log && y <= 0) ? null : [s.x(line.x[i]), s.y(y)]
      if (here) {
        const n = before ? Math.min(80, Math.ceil(Math.abs(here[0] - before[0]) / 8)) : 1
        for (let k = 1; k <= n; k++) points.push(before ? mix(before, here, k / n) : here)
      }
      before = here
    })
  }
  return points.filter(([x]) => x >= s.left && x <= s.right)
}

function mix(a, b, share) {
  return [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share]
}
