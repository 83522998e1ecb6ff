// Whether a sheet is blank, what the server gets of it, how long it may take (an upload is slow), and when there is another.
const SLOWEST = 50; // bytes/ms

const isEmpty = ({ kind, strokes }) => kind === "strokes" && !strokes.length;
const plain = ({ kind, strokes, index, data }) => ({ kind, strokes, index, data });
const patienceFor = ({ data }) => PATIENCE + (data?.length ?? 0) / SLOWEST;

// Tells a panel of every new sheet and of every other network: turned({sheet}) or turned({network}).
function follow(network, turned) {
  document.addEventListener("sheet", ({ detail }) => turned({ sheet: detail }));
  document.addEventListener("network", ({ detail }) => {
    if (detail === network) return;
    network = detail;
    turned({ network });
  });
}
