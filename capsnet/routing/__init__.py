"""Routing algorithms: one file each, by name in `ROUTING`.

Every layer is `layer(capsules, trace=False) -> Routed`.
"""

from capsnet.routing.dynamic import DynamicRouting

ROUTING = {"dynamic": DynamicRouting}
