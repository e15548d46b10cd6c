// What every page loads: small aids for forms. All pages work without them.

for (const button of document.querySelectorAll("[data-show]")) {
  const field = document.getElementById(button.dataset.show);
  button.hidden = false;
  button.addEventListener("click", () => show(button, field, field.type === "password"));
}

for (const button of document.querySelectorAll("[data-copy]")) {
  const field = document.getElementById(button.dataset.copy);
  const says = button.querySelector("span") ?? button;
  const text = says.textContent;
  button.hidden = false;
  says.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch { // without https there is no clipboard
      document.execCommand("copy");
    }
    says.textContent = button.dataset.done;
    setTimeout(() => (says.textContent = text), 2000);
  });
}

for (const button of document.querySelectorAll("[data-generate]")) {
  const field = document.getElementById(button.dataset.generate);
  button.hidden = false;
  button.addEventListener("click", () => {
    field.value = password();
    show(document.querySelector(`[data-show="${field.id}"]`), field, true);
    field.focus();
    field.select();
  });
}

function show(button, field, shown) {
  field.type = shown ? "text" : "password";
  button.setAttribute("aria-pressed", shown);
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
