words.begin(); // Gradio has put a title of its own
words.fill(element);
element.querySelector(".language").addEventListener("click", () => words.speak(words.other()));
