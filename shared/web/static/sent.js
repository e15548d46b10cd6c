// Helps with the links of what was sent: the first is selected, and devices that can share do.

const field = document.querySelector("input[readonly][autofocus]");
field?.focus();
field?.select();

for (const button of document.querySelectorAll("[data-share]")) {
  if (!navigator.share) break;
  button.hidden = false;
  button.addEventListener("click", () => {
    const { value } = document.getElementById(button.dataset.share);
    navigator.share({ url: value }).catch(() => {}); // whoever changes their mind
  });
}
