"use strict";
for (const button of document.querySelectorAll("button.copy")) {
  const name = button.textContent;
  button.addEventListener("click", () => {
    const code = button.parentElement.querySelector("code");
    const done = () => {
      button.textContent = document.body.dataset.copied;
      setTimeout(() => { button.textContent = name; }, 1500);
    };
    const by_hand = () => {
      const range = document.createRange();
      range.selectNodeContents(code);
      const chosen = getSelection();
      chosen.removeAllRanges();
      chosen.addRange(range);
      if (document.execCommand("copy")) done();
    };
    if (navigator.clipboard && isSecureContext) {
      navigator.clipboard.writeText(code.textContent).then(done, by_hand);
    } else {
      by_hand();
    }
  });
}
// What was ticked is still ticked when the file is opened again.
const key = "deltaproto " + document.body.dataset.key;
const boxes = [...document.querySelectorAll(".checks input")];
try {
  const ticked = new Set(JSON.parse(localStorage.getItem(key) || "[]"));
  boxes.forEach((box, number) => {
    box.checked = ticked.has(number);
    box.addEventListener("change", () => {
      const now = boxes.flatMap((each, place) => (each.checked ? [place] : []));
      localStorage.setItem(key, JSON.stringify(now));
    });
  });
} catch {
  // Some browsers keep nothing for files.
}
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
