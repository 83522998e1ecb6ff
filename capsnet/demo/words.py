"""What the page says: the verdict on ten lengths, what a capsule, a length and a pose are, what networks do."""

SILENT = 0.5  # a longest capsule below this is no answer
CLOSE = 0.2  # two capsules nearer than this are rivals
NEARLY_ALL = 24  # pixels of 28; digits are 20 high or wide
CLEAR = 0.8  # from here on the page speaks without a "looks like"

EMPTY = "The sheet is empty.", "Draw a digit, or choose one with the buttons."
SILENCE = "The server cannot be reached.", "What is on the pad stays and is read as soon as it answers."
TITLE = "Draw a digit, bend its pose"
LEAD = (
    "Ten capsules look at your digit, and each answers with a vector. "
    "Bend that vector, and the decoder draws the digit anew."
)
SEEN = (
    "Your digit, 20 pixels high or wide and centred by its ink in 28 × 28, like the digits of MNIST, "
    "the collection it learned from. Size and place on the pad do not matter."
)
CAPSULE = (
    "<strong>A capsule</strong> is a group of neurons whose output is a vector instead of a single number. "
    "The network ends in ten of them, one for each digit."
)
LENGTH = (
    "<strong>The length</strong> of the vector says how sure a capsule is that its digit is there, 0 to 1. "
    "Each answers for itself: the lengths need not add up to 1, and two may be long at once. "
    "Nothing but digits was learned, and a letter makes a capsule long, too. But only digits can be drawn from poses, "
    "and where the digit is not what you drew, the answer is: no digit."
)
POSE = (
    "<strong>The pose</strong> is where the vector points: 16 numbers for how the digit is written, such as "
    "slant, width, thickness or the size of a loop. Training found them without names, and many do several "
    "things at once. The decoder, a second network, draws it from them alone."
)
ALONE = (
    "<strong>Thickness, slant and the others</strong> move many numbers of the pose together, by amounts fitted on the "
    "training images, so that one property changes and the rest stays, nearly. Pale ones do not move like that in this "
    "digit, or nobody has measured it."
)
RANGE = (
    "<strong>The sixteen sliders</strong> each span 98 of 100 training images of this digit; the mark is your drawing, "
    "and the number beside it takes the change back. The words say what moving it right does; where there are none, it "
    "does several things at once, or little."
)
COMPARE = (
    "Your drawing through every network: the lengths of its ten capsules, the picture that its decoder draws of the "
    "longest one's pose, and how long it takes here to read the 28 × 28 pixels. Choose a network to go on with it."
)
PERTURB = (
    "A row for each number of the pose: in the middle your drawing as the decoder has it, left and right with "
    "that one number moved by up to half its slider's range. Choose a picture to take it to the sliders."
)
VOTES = (
    "<strong>Smaller capsules</strong> see parts of your drawing, and each votes for all ten digits. A dot stands for "
    "those that see the same part, and lies in its middle: filled where they make the chosen digit's capsule longer, a "
    "ring where they make it shorter, larger for more. The bars count every capsule's vote for and against a digit. "
    "(In lengths before the squash brings them below 1, and without each digit's own bias.) Choose a digit or a dot."
)
UNVOTED = "Nobody has voted yet: draw a digit."
AGREE = " From round to round, votes that agree with the others count more."
MATRICES = (
    " Here votes count by how close together all votes for a digit lie: they are all for it or all against it, and the "
    "numbers are of the activation before its sigmoid."
)
MORPH = (
    "<strong>Between two poses</strong> there are others, and the decoder draws each. Keep a drawing as A, draw B, and "
    "slide from one to the other. The same digit bends from A to B. Two different ones have a capsule each: A's pose "
    "fades out while B's fades in, a mix that the decoder never learned."
)
STYLE = (
    "<strong>B in the style of A</strong> is B with its pose moved until its thickness, slant or width is that of A, "
    "nearly; what makes it this digit stays."
)
UNKEPT = "Draw a digit, then keep it as A."
KEEP = "Keep this drawing as A, then draw another, B."
KEPT = "A is kept. Now draw B: another digit, or the same one written differently."
UNSTYLED = "There is no style to take over: no property is known by which both poses can be moved."
STYLED = "The sliders have B in the style of A now."
STRIP = (
    "Drawings that you clear or replace wait here, with their sliders, until you close the page; choose one to go on "
    "with it. A link holds the strokes, the network and the pose; the files hold the bent digit and its numbers."
)
SHARED = {
    "copied": "The link is copied. Whoever opens it finds your drawing and its sliders as they are.",
    "select": "This is the link; copy it from here.",
    "unlinked": "A picture from a file does not fit into a link: save the picture or the pose instead.",
    "broken": "The link that you followed holds no drawing that can be read here.",
}
NOTHING = "There is nothing to compare yet: draw a digit."
# What a slider does to the right, when the property grows and when it falls.
MOVES = {
    "thickness": ("thicker", "thinner"),
    "slant": ("leans right", "leans left"),
    "width": ("wider", "narrower"),
    "height": ("taller", "shorter"),
    "length": ("longer line", "shorter line"),
    "loop": ("larger loop", "smaller loop"),
    "across": ("moves right", "moves left"),
    "down": ("moves down", "moves up"),
}
CREDIT = (
    'Sample digits: <a href="https://yann.lecun.org/exdb/mnist/" rel="noreferrer">MNIST</a>, '
    "Yann LeCun and Corinna Cortes, "
    '<a href="https://creativecommons.org/licenses/by-sa/3.0/" rel="noreferrer">CC BY-SA 3.0</a>. '
    "Drawings and uploads are read and forgotten; nothing is stored."
)


PUBLISHED, ROUTINGS, OWN = GROUPS = "As published", "One small network, routed in different ways", "Others"
# Networks by name: their group, what they are called, and what is special about them.
NETWORKS = {
    "capsnet": (PUBLISHED, "CapsNet, 2017", "1,152 capsules vote for ten in three rounds, and who agrees counts more."),
    "efficient-capsnet": (PUBLISHED, "Efficient-CapsNet, 2021", "16 capsules vote, in one round of self-attention."),
    "dynamic-capsnet": (ROUTINGS, "Dynamic routing", "48 capsules vote in three rounds, and who agrees counts more."),
    "uniform-capsnet": (ROUTINGS, "Uniform coupling", "No routing: all votes count the same."),
    "affine-capsnet": (ROUTINGS, "One shared transformation", "No routing, and all capsules vote by the same rule."),
    "attention-capsnet": (ROUTINGS, "Self-attention", "One round: a vote near the sum of all counts more."),
    "multi-head-capsnet": (ROUTINGS, "Multi-head attention", "Self-attention with a learned sense of what is near."),
    "orth-capsnet": (
        ROUTINGS,
        "Sparse attention",
        "Capsules that repeat others are dropped, and weak votes count nothing.",
    ),
    "windowed-capsnet": (ROUTINGS, "Windowed routing", "Each capsule looks for agreement among its neighbours only."),
    "em-capsnet": (
        ROUTINGS,
        "EM routing",
        "Poses are matrices of 4 × 4, and an activation of its own stands for a length.",
    ),
}


def network(name: str) -> tuple[str, str, str]:
    """Group, title and description of a network; of one that has none, its name."""
    return NETWORKS.get(name, (OWN, name, ""))


def verdict(lengths: list[float], names: list[str], known: bool = True) -> tuple[list[int], str, str]:
    """What the lengths of all capsules say: the digits in question, which digit it is, and how sure.

    known: whether what the capsules draw looks like the drawing.
    """
    first, second = sorted(range(len(lengths)), key=lambda k: -lengths[k])[:2]
    figures = [figure(length) for length in lengths]
    if not known:
        return (
            [],
            "This does not look like a digit.",
            (f"Nearest is the {names[first]}, {figures[first]}, but what its capsule draws is not what you drew."),
        )
    if lengths[first] < SILENT:
        return [], "Hardly any capsule answers.", f"The longest, the {names[first]}, is only {figures[first]} long."
    if lengths[first] - lengths[second] < CLOSE:
        one, other = sorted((first, second))
        sentence = f"Between {article(names[one])} and {article(names[other])}."
        return [one, other], sentence, f"Their capsules are {figures[one]} and {figures[other]} long."
    says = "This is" if lengths[first] >= CLEAR else "Looks like"
    detail = f"Its capsule is {figures[first]} long; next is the {names[second]}, {figures[second]}."
    return [first], f"{says} {article(names[first])}.", detail


def unlike(name: str) -> str:
    """Why a drawing that is nearest to this digit is none, for programs."""
    return f"This does not look like a digit: what the {name}'s capsule draws of it is another drawing."


def move(effect: dict) -> str:
    """What happens to the digit while a slider goes to the right: "thicker, wider"; nothing if that has no name."""
    return ", ".join(MOVES[name][effect["changes"][name] < 0] for name in effect["names"])


def voters(count: int, grid: tuple[int, int], side: int, rounds: int = 1, matrices: bool = False) -> str:
    """How many capsules vote, from how many places, how much each of them sees, and what counts."""
    capsules = f"{count:,} capsules vote"
    places = grid[0] * grid[1]
    if places > 1:
        each = f"{count // places} at each of {grid[0]} × {grid[1]} places"
        capsules += f", {each}" if count > places else f", at {grid[0]} × {grid[1]} places"
    whole = ", nearly the whole drawing" if side >= NEARLY_ALL else ""
    counts = MATRICES if matrices else AGREE if rounds > 1 else ""
    return f"In this network {capsules}; each sees {side} × {side} pixels{whole}.{counts}"


def spread(count: int, alike: float) -> str:
    """How far apart the capsules' directions are."""
    return (
        f"Where the {count:,} poses point, each counted by its activation: their mean direction has length "
        f"{alike:.2f}; 0 is every way, 1 is all the same."
    )


def way(one: str, other: str) -> str:
    """What lies between the digits of these names."""
    ends = f"one {one} to another" if one == other else f"{article(one)} to {article(other)}"
    return f"From {ends}: move the slider, or play."


def style(properties: tuple[str, ...], name: str) -> str:
    """Which properties the digit of that name took over."""
    if not properties:
        return UNSTYLED
    *others, last = properties
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"Taken over, as far as {article(name)} goes: {listed}."


def figure(length: float) -> str:
    """A length as the page writes it, beside the bars and in the sentence alike."""
    return f"{length:.2f}"


def milliseconds(seconds: float) -> str:
    """A time as the page writes it."""
    return f"{1000 * seconds:.1f} ms"


def article(name: str) -> str:
    """The name with its article: "a 7", "an 8"."""
    return f"an {name}" if name[:1].lower() in "8aeiou" else f"a {name}"
