// Makes wide tables scrollable by keyboard, and opens all details for printing.
(function () {
  "use strict";
  const scrollers = document.querySelectorAll(".scroll");

  // Only tables that scroll can be reached with the Tab key.
  function updateTabStops() {
    for (const part of scrollers) {
      if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
      else part.removeAttribute("tabindex");
    }
  }

  window.addEventListener("resize", updateTabStops);
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
  updateTabStops();
})();
