// What every page loads: small aids for forms. All pages work without them. Buttons that are added to
// a page later work, too:
//
//   <button data-show="ID">Show</button>             shows a password, and hides it again
//   <button data-generate="ID">Suggest</button>      fills in a password
//   <button data-copy="ID" data-done="Copied"><span>Copy</span></button>         what is in a field
//   <button data-copy-text="LINK" data-done="Copied"><span>Copy</span></button>  what is in none
//
// A button that copies says so for a moment.

/** @type {NodeListOf<HTMLElement>} */
const hidden = document.querySelectorAll("[data-show], [data-generate], [data-copy]");
for (const button of hidden) button.hidden = false;

document.addEventListener("click", ({ target }) => {
  if (!(target instanceof Element)) return;
  const button = target.closest("button");
  if (!button) return;
  const { show, generate, copy, copyText } = button.dataset;
  const field = /** @type {HTMLInputElement} */ (document.getElementById(show ?? generate ?? copy ?? ""));
  if (show) reveal(button, field, field.type === "password");
  else if (generate) suggest(field);
  else if (copy) field.select();
  if (copy || copyText) copyFor(button, copyText ?? field.value);
});

/** @param {Element} button @param {HTMLInputElement} field @param {boolean} shown */
function reveal(button, field, shown) {
  field.type = shown ? "text" : "password";
  button.setAttribute("aria-pressed", String(shown));
}

/** @param {HTMLInputElement} field */
function suggest(field) {
  const button = document.querySelector(`[data-show="${field.id}"]`);
  field.value = password();
  field.dispatchEvent(new Event("input", { bubbles: true }));
  if (button) reveal(button, field, true);
  field.focus();
  field.select();
}

// password returns 20 letters in groups of 5, none of which looks like another: about 92 random bits.
function password() {
  const letters = "abcdefghjkmnpqrstuvwxyz2"; // 24, so that 240 of a byte's values give each equally often
  let text = "";
  while (text.length < 23) {
    const [n] = crypto.getRandomValues(new Uint8Array(1));
    if (n < 240) text += letters[n % 24] + (text.length % 6 === 4 ? "-" : "");
  }
  return text.slice(0, 23);
}

/** @param {HTMLElement} button @param {string} text */
async function copyFor(button, text) {
  if (!(await copied(text))) return;
  const label = /** @type {HTMLElement} */ (button.querySelector("span"));
  const before = (label.dataset.before ??= label.textContent);
  label.textContent = button.dataset.done ?? "";
  setTimeout(() => (label.textContent = before), 2000);
}

// copied also works without https, where browsers have no clipboard to write to.
/** @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = Object.assign(document.createElement("textarea"), { value: text, readOnly: true, className: "sr" });
    const focused = document.activeElement;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return done;
  }
}
