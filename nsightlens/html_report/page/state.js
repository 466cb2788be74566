// What is shown, kept in the address: a copied link shows the same.

const FACTS = JSON.parse(document.getElementById("facts").textContent);
const state = {};
const listeners = [];

function readState() {
  for (const key of Object.keys(state)) delete state[key];
  Object.assign(state, Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
}

// Change some of it ("" takes a key away) and show the page again.
function change(changes) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined) delete state[key];
    else state[key] = String(value);
  }
  history.replaceState(null, "", `#${new URLSearchParams(state)}`);
  for (const listener of listeners) listener(changes);
}
