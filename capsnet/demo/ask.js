// Questions to the server, one at a time: of those that come meanwhile only the newest goes out next. `place` is busy
// until the last one is settled. An answer counts unless a later question's came before it, even after its patience ran out.
const HOLD = 1000, PATIENCE = 5000; // ms until the next may go out all the same; until `failed` says that none came

function asker(place, ask, { answered, failed, patience = () => PATIENCE }) {
  let waiting = null, held = false, asked = 0, shown = 0;

  async function put(question) {
    const number = ++asked;
    const fail = () => {
      if (number < asked || waiting) return; // a later one will tell
      shown = number - 1;
      place.ariaBusy = "false";
      failed(question);
    };
    const late = setTimeout(fail, patience(question));
    const answer = await ask(question).catch(() => undefined); // Gradio itself answers undefined when the server is gone
    clearTimeout(late);
    if (answer === undefined) return fail();
    if (number <= shown) return;
    shown = number;
    place.ariaBusy = String(number < asked || Boolean(waiting));
    answered(answer, question);
  }

  return async (question) => {
    waiting = question;
    place.ariaBusy = "true";
    if (held) return;
    held = true;
    while (waiting) {
      const next = waiting;
      waiting = null;
      await Promise.race([put(next), new Promise((done) => setTimeout(done, HOLD))]);
    }
    held = false;
  };
}
