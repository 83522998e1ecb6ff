"""The page: draw a digit, see ten capsules answer, bend the winner's pose. Also the entry point of a Space.

python app.py [--host HOST] [--port PORT] [--share] [--model NAME]
"""

import argparse
import os
import socket

# Before gradio is imported: neither its analytics nor its version check may reach out.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

if os.environ.get("SPACES_ZERO_GPU"):
    # A Space on ZeroGPU ends unless its package comes before torch and a function asks for a GPU. Here none is used:
    # one digit is read on the CPU before a GPU could be handed over.
    import spaces

    spaces.GPU(lambda: None)


class Parser(argparse.ArgumentParser):
    """argparse without the usage text before an error: one line, exit status 2."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def port(text: str) -> int:
    """A port number; argparse shows the sentence of the error."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: choose a number from 1 to 65535")
    return int(text)


# On a Space every visitor is another machine.
HOST = "0.0.0.0" if os.environ.get("SYSTEM") == "spaces" else "127.0.0.1"

parser = Parser(prog="app.py", description="Draw a digit, see ten capsules answer, bend the pose of the winner.")
parser.add_argument(
    "--host",
    default=os.environ.get("GRADIO_SERVER_NAME") or HOST,
    help="address to listen on (default: this machine only; a Space listens everywhere)",
)
parser.add_argument(
    "--port",
    type=port,
    default=os.environ.get("GRADIO_SERVER_PORT"),
    help="port from 1 to 65535 (default: the first free one from 7860)",
)
parser.add_argument("--share", action="store_true", help="also open a public link through gradio.live")
parser.add_argument("--model", default="capsnet", help="a name in weights/, a folder, or user/repo on the Hub")


def check_address(host: str, number: int | None) -> None:
    """End with exit status 2 where nothing can listen: gradio would try, and say something else."""
    name = host[1:-1] if host.startswith("[") and host.endswith("]") else host  # IPv6 as in a browser
    try:
        family, kind, *_, address = socket.getaddrinfo(name, number or 0, type=socket.SOCK_STREAM)[0]
        for place in (address, ("127.0.0.1", number or 0)):  # gradio wants the port of this one, too
            with socket.socket(family if place is address else socket.AF_INET, kind) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(place)
    except (OSError, UnicodeError) as error:
        where = host if number is None else f"{host}, port {number}"
        cause = getattr(error, "strerror", None) or "this is no host name"
        parser.error(f"the page cannot be served at {where} ({cause}): choose another --host or --port")


def load(name: str):
    """The model of that name, ready to answer; one that the page cannot use ends with exit status 2."""
    import torch

    import capsnet

    torch.set_num_threads(min(2, os.cpu_count() or 1))  # one digit is too little work for more
    try:
        model = capsnet.load_model(name)
    except capsnet.ModelError as error:
        parser.error(str(error))
    if (model.info.kind, model.info.in_channels, model.info.input_size) != ("digit", 1, 28):
        parser.error(f"{name} does not read one digit of 28 by 28 grey pixels: choose another model")
    return model


def main() -> None:
    options = parser.parse_args()
    check_address(options.host, options.port)
    model = load(options.model)

    from capsnet import available_models
    from capsnet.demo import networks, page, theme

    name = os.path.basename(options.model.rstrip("/"))  # of a folder or a repository, what comes last
    if name in available_models():  # unless that is the name of another
        name = options.model
    offered = networks.beside(model, name)
    served = page.build(offered, networks.plain(model), networks.of_pairs(model))
    listen = {"server_name": options.host, "server_port": options.port, "share": options.share}
    try:
        served.launch(**listen, **theme.launch_options(offered))
    except OSError:
        parser.error("there is no free port at that address: choose one with --port")


if __name__ == "__main__":
    main()
