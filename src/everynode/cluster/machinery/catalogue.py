"""What is said of images while the cluster runs: the ConfigMap kube-system/everynode-images."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from everynode.api.objects import ObjectMeta, Partial
from everynode.clock import Clock
from everynode.cluster.machinery.behaviour import ImageQuirks, parse_images
from everynode.cluster.machinery.events import Recorder, Subject
from everynode.kube.resources import Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import Scope
from everynode.kube.watch import Watcher

_LOG: Final = logging.getLogger(__name__)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE: Final = "kube-system"
NAME: Final = "everynode-images"
KEY: Final = "images"


class ConfigMap(Partial, frozen=True):
    """A ConfigMap."""

    metadata: ObjectMeta
    data: dict[str, str] = msgspec.field(default_factory=dict)


decode_config_map: Final[Callable[[bytes], ConfigMap]] = msgspec.json.Decoder(ConfigMap).decode


class Catalogue:
    """Follows the ConfigMap and tells of every change."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        changed: Callable[[ImageQuirks], None],
        recorder: Recorder,
    ) -> None:
        self._changed = changed
        self._recorder = recorder
        self._quirks = ImageQuirks()
        self.watcher = Watcher(
            transport,
            clock,
            resource=CONFIG_MAPS,
            decode=decode_config_map,
            consumer=self,
            scope=Scope(NAMESPACE, fields=f"metadata.name={NAME}"),
        )

    def replace(self, objects: Iterable[ConfigMap], version: str) -> None:
        """This is what there is, if there is anything."""
        found = list(objects)
        if found:
            self.upsert(found[0])
        else:
            self._set(ImageQuirks())

    def upsert(self, item: ConfigMap) -> None:
        """Somebody has written it."""
        quirks, faults = parse_images(item.data.get(KEY, ""))
        meta = item.metadata
        for fault in faults:
            _LOG.warning("ConfigMap %s/%s: %s", NAMESPACE, NAME, fault)
            subject = Subject("ConfigMap", meta.name, meta.namespace, uid=meta.uid)
            record = self._recorder.record
            record(subject, "BadBehaviour", fault, component="everynode", warning=True)
        self._set(quirks)

    def delete(self, item: ConfigMap) -> None:
        """Somebody has removed it."""
        self._set(ImageQuirks())

    def bookmark(self, version: str) -> None:
        """Nothing has happened."""

    def _set(self, quirks: ImageQuirks) -> None:
        if quirks != self._quirks:
            self._quirks = quirks
            self._changed(quirks)
