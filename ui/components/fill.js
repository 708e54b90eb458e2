// A sentence with its values put into its {places}.
function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => (name in values ? String(values[name]) : place))
}
