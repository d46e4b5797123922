/* The overview: only the steps a call that the chosen model has can be chosen. */
"use strict";
(function () {
  const form = document.querySelector('form[data-filters="fastest"]');
  if (!form) return;
  const chunks = form.elements.chunk;
  const options = Array.from(chunks.options);
  const maps = Array.from(document.querySelectorAll(".map"));
  rnnbench.onState(function () {
    rnnbench.misses(form);
    const model = form.elements.model.value;
    const chosen = chunks.value;
    const known = new Set(maps.filter((map) => !model || map.dataset.model === model).map((map) => map.dataset.chunk));
    chunks.replaceChildren(...options.filter((option) => !option.value || known.has(option.value)));
    const kept = Array.from(chunks.options).some((option) => option.value === chosen);
    chunks.value = kept ? chosen : chunks.options[0].value;
    chunks.dataset.initial = chunks.options[0].value;
    if (!kept) rnnbench.change({ chunk: null });
    for (const map of maps) map.hidden = (model && map.dataset.model !== model) || (chunks.value && map.dataset.chunk !== chunks.value);
  });
})();
