// Elements are made of text only: names of files and accounts may be anything, and nothing of them is read as markup.

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function setText(id, text) {
  const element = document.getElementById(id);
  // A screen reader reads what changed: what did not is left alone.
  if (element.textContent !== text) element.textContent = text;
}

// Rows, boxes and entries stay where they are as long as they say the same: focus and selection are not lost.
export function replaceChanged(parent, made) {
  made.forEach((element, place) => {
    const there = parent.children[place];
    if (!there) parent.append(element);
    else if (!there.isEqualNode(element)) there.replaceWith(element);
  });
  while (parent.children.length > made.length) parent.lastElementChild.remove();
}
