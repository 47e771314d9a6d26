"""Image config: watches the ConfigMap kube-system/everynode-images."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from everynode.api.objects import ObjectMeta, Partial
from everynode.clock import Clock
from everynode.components.events import EventRecorder, InvolvedObject
from everynode.components.guard import log_errors
from everynode.components.kubelet.behaviour import ImageOverrides, parse_images
from everynode.kube.resources import Resource
from everynode.kube.transport import Transport
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import NONE_UNREADABLE
from everynode.kube.watch.watcher import Watcher

_LOG: Final = logging.getLogger(__name__)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
IMAGE_CONFIG_NAMESPACE: Final = "kube-system"
IMAGE_CONFIG_NAME: Final = "everynode-images"
IMAGE_CONFIG_KEY: Final = "images"


class ConfigMap(Partial, frozen=True):
    """The fields of a ConfigMap that are read."""

    metadata: ObjectMeta
    data: dict[str, str] = msgspec.field(default_factory=dict)


decode_config_map: Final[Callable[[bytes], ConfigMap]] = msgspec.json.Decoder(ConfigMap).decode


class ImageConfigWatcher:
    """Watches the ConfigMap and passes every change of it to `on_change`."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        on_change: Callable[[ImageOverrides], None],
        recorder: EventRecorder,
    ) -> None:
        self._on_change = on_change
        self._recorder = recorder
        self._overrides = ImageOverrides()
        self.watcher = Watcher(
            transport,
            clock,
            resource=CONFIG_MAPS,
            decode=decode_config_map,
            consumer=self,
            options=ListOptions(
                IMAGE_CONFIG_NAMESPACE, fields=f"metadata.name={IMAGE_CONFIG_NAME}"
            ),
        )

    def replace(
        self,
        objects: Iterable[ConfigMap],
        version: str,
        unread: Mapping[str, str] = NONE_UNREADABLE,
    ) -> None:
        """A list has arrived; an object that cannot be decoded does not count as deleted."""
        found = list(objects)
        if found:
            self.upsert(found[0])
        elif not unread:
            self._set(ImageOverrides())

    def upsert(self, item: ConfigMap) -> None:
        """The ConfigMap was created or changed."""
        overrides, errors = parse_images(item.data.get(IMAGE_CONFIG_KEY, ""))
        meta = item.metadata
        for error in errors:
            _LOG.warning("ConfigMap %s/%s: %s", IMAGE_CONFIG_NAMESPACE, IMAGE_CONFIG_NAME, error)
            involved = InvolvedObject("ConfigMap", meta.name, meta.namespace, uid=meta.uid)
            record = self._recorder.record
            record(involved, "BadBehaviour", error, component="everynode", warning=True)
        self._set(overrides)

    def delete(self, item: ConfigMap) -> None:
        """The ConfigMap was deleted."""
        self._set(ImageOverrides())

    def bookmark(self, version: str) -> None:
        """Bookmarks are not needed here."""

    def _set(self, overrides: ImageOverrides) -> None:
        if overrides != self._overrides:
            self._overrides = overrides
            log_errors(self._on_change)(overrides)
