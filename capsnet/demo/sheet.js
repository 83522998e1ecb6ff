// Whether a sheet is blank, what the server gets of it, and how long it may take: an upload is slow.
const SLOWEST = 50; // bytes/ms

const isEmpty = ({ kind, strokes }) => kind === "strokes" && !strokes.length;
const plain = ({ kind, strokes, index, data }) => ({ kind, strokes, index, data });
const patienceFor = ({ data }) => PATIENCE + (data?.length ?? 0) / SLOWEST;
