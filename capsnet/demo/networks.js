// The choice of the network. What is chosen, here or elsewhere, goes through the page as the DOM event "network".
{
  const choice = element.querySelector("select"), about = element.querySelector(".about-network");
  const tell = () => {
    const { title, about: text } = JSON.parse(choice.selectedOptions[0].dataset.network);
    about.hidden = !text;
    words.say(about.querySelector("strong"), { say: "lengths.about", title });
    words.say(about.querySelector("span"), text);
  };
  choice.value = props.network;
  tell();
  choice.addEventListener("change", () => {
    document.dispatchEvent(new CustomEvent("network", { detail: choice.value }));
  });
  document.addEventListener("network", ({ detail }) => {
    choice.value = detail;
    tell();
  });
}
