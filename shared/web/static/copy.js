// Copies texts that are in no field:
// <button data-copy-text="LINK" data-done="Copied"><span>Copy</span></button>.
// The button's label says so for a moment. Buttons that are added to the page later work, too.

document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-copy-text]");
  if (!button || !(await copy(button.dataset.copyText))) return;
  const label = button.querySelector("span");
  label.dataset.before ??= label.textContent;
  label.textContent = button.dataset.done;
  setTimeout(() => (label.textContent = label.dataset.before), 2000);
});

// copy also works without https, where browsers have no clipboard to write to.
async function copy(text) {
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
    focused?.focus();
    return done;
  }
}
