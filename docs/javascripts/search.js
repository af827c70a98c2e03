// The theme's search appends * to each word of a query. Then "a" matches nearly every page, and "or"
// none, so a question in plain English finds nothing useful. Common words are removed from a query
// before it reaches the search worker, as they are from the index.
(() => {
  const query = 2; // the type of message that carries a query
  const common = new Set(
    ("a about am an and are as at be by can do does for from have how i if in into is it " +
      "its me my no not of on or our should so that the their them there they this to was we " +
      "what when where which who whom why will with you your").split(" "),
  );
  const send = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message?.type === query && typeof message.data === "string") {
      const words = message.data.replace(/[?!,;]/g, " ").split(/\s+/).filter(Boolean);
      const kept = words.filter((word) => !common.has(word.toLowerCase()));
      message = { ...message, data: (kept.length ? kept : words).join(" ") };
    }
    return send.call(this, message, ...rest);
  };
})();
