"""The decoder's weights on their way to the browser, which draws the sliders' pictures itself: no tick asks here."""

import zlib

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from torch import nn

from .networks import named

# Below Gradio's own: with rendering on the server, what lies elsewhere does not reach Python.
ADDRESS = "/gradio_api/decoders/"
FOREVER = "public, max-age=31536000, immutable"  # the address says which weights


def routes(networks: dict) -> list[Route]:
    """What answers `ADDRESS` + network with the weights of its decoder; 404 and a sentence where there is none."""

    def answer(request: Request) -> Response:
        try:
            content = weights(named(networks, request.path_params["network"]))
        except ValueError as error:
            return JSONResponse({"detail": str(error)}, 404)
        return Response(content, media_type="application/octet-stream", headers={"Cache-Control": FOREVER})

    return [Route(ADDRESS + "{network}", answer)]


def layers(model) -> list[nn.Linear]:
    return [layer for layer in model.decoder.net if isinstance(layer, nn.Linear)]


def shape(model) -> dict:
    """What the browser must know of the weights: `sizes`, inputs and outputs of every layer, and their `version`."""
    sizes = [(layer.in_features, layer.out_features) for layer in layers(model)]
    return {"sizes": sizes, "version": f"{zlib.crc32(weights(model)):08x}"}


def weights(model) -> bytes:
    """For each layer in turn its matrix, row by row, and its bias, in little-endian float16, as models are stored."""
    tensors = [tensor for layer in layers(model) for tensor in (layer.weight, layer.bias)]
    return b"".join(tensor.detach().half().cpu().numpy().astype("<f2").tobytes() for tensor in tensors)
