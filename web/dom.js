// Elements, made without HTML: text from a model or a person is only ever text.
export const $ = (id) => document.getElementById(id);

// make("p", {class: "x", text: "y", on: {click: f}, "--p": 0.5, title: "z"}, children...)
export function make(tag, attributes = {}, ...children) {
  const element =
    tag === "svg" || make.svg.has(tag)
      ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (name === "on")
      for (const [event, f] of Object.entries(value)) element.addEventListener(event, f);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
make.svg = new Set(["polyline", "circle", "line", "text"]);

export function later(ms, f) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...values), ms);
  };
}

// A token as it is shown: blanks and line ends as signs.
export function sign(text) {
  return text.replace(/\n/g, "↵").replace(/^ $/, "␣");
}
