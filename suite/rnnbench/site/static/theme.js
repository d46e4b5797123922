/* Sets the theme before anything is drawn: the one that was chosen here before, or that of the system. */
"use strict";
(function () {
  try {
    const chosen = localStorage.getItem("rnnbench-theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch (error) {
    /* Storage is not allowed here: the system's theme stays. */
  }
})();
