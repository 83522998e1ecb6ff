// The choice of the network. What is chosen, here or elsewhere, goes through the page as the DOM event "network".
{
  const choice = element.querySelector("select"), about = element.querySelector(".about-network");
  const tell = () => {
    const { label, dataset } = choice.selectedOptions[0];
    about.hidden = !dataset.about;
    about.querySelector("strong").textContent = `${label}:`;
    about.querySelector("span").textContent = dataset.about;
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
