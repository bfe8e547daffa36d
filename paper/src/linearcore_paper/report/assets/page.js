// What the page does besides the explorer: parts that scroll sideways take the keyboard, and paper shows everything.
(function () {
  "use strict";
  const scrollers = document.querySelectorAll(".scroll");

  // A stop for the Tab key where there is something to scroll, and none where there is not.
  function reach() {
    for (const part of scrollers) {
      if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
      else part.removeAttribute("tabindex");
    }
  }

  window.addEventListener("resize", reach);
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  reach();
})();
