"""Validation of volumes: one source each, with its required fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from everynode.api.quantity import parse_quantity
from everynode.api.validation.accessors import number, pairs, section, sections, text
from everynode.api.validation.downward_api import (
    IN_FILES,
    check_field_reference,
    check_resource_reference,
)
from everynode.api.validation.field_errors import (
    FieldErrors,
    Object,
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    required,
    too_long,
    unsupported,
)
from everynode.api.validation.metadata import check_annotations, check_labels
from everynode.api.validation.names import dns_label, dns_subdomain, file_path, no_parent_path

_FILE_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES: Final = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File"),
    *("FileOrCreate", "Socket"),
)
# Sources in the order in which the API server checks them, each with its required fields. The first
# source that is set counts; the others are errors.
_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "emptyDir": (),
    "hostPath": ("path",),
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "glusterfs": ("endpoints", "path"),
    "flocker": (),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "quobyte": ("registry", "volume"),
    "downwardAPI": (),
    "fc": (),
    "flexVolume": ("driver",),
    "configMap": ("name",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "storageos": (),
    "projected": (),
    "scaleIO": ("gateway", "system", "volumeName"),
    "csi": ("driver",),
    "ephemeral": ("volumeClaimTemplate",),
    "image": ("reference",),
}


def check_volumes(spec: Object, path: str, found: dict[str, Object]) -> FieldErrors:
    """Errors in the volumes of a pod; the valid volumes are added to `found` by name."""
    for here, volume in sections(spec, "volumes", path):
        name = text(volume, "name")
        wrong = list(_check_source(volume, here))
        if not name:
            wrong.append(required(f"{here}.name"))
        else:
            wrong += invalid_each(f"{here}.name", name, dns_label(name))
        if name in found:
            wrong.append(duplicate(f"{here}.name", name))
        yield from wrong
        if not wrong:
            found[name] = volume


def _check_source(volume: Object, path: str) -> FieldErrors:
    present = [name for name in _SOURCES if section(volume, name) is not None]
    if not present:
        yield required(path, "must specify a volume type")
        return
    source, here = section(volume, present[0]) or {}, f"{path}.{present[0]}"
    for field in _SOURCES[present[0]]:
        if not source.get(field):
            yield required(f"{here}.{field}")
    check = _CHECKS.get(present[0])
    if check is not None:
        yield from check(source, here)
    for name in present[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 volume type")


def _check_empty_dir(source: Object, path: str) -> FieldErrors:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit).nanos < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _check_host_path(source: Object, path: str) -> FieldErrors:
    where = text(source, "path")
    if not where:
        return
    yield from invalid_each(f"{path}.path", where, no_parent_path(where))
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        yield unsupported(f"{path}.type", kind, _HOST_PATH_TYPES)


def _check_mode(source: Object, name: str, path: str) -> FieldErrors:
    mode = number(source, name)
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(f"{path}.{name}", mode, _FILE_MODE)


def _check_keys(source: Object, path: str) -> FieldErrors:
    """The items of a ConfigMap or Secret volume."""
    yield from _check_mode(source, "defaultMode", path)
    for here, item in sections(source, "items", path):
        yield from _check_item(item, here)


def _check_item(item: Object, path: str) -> FieldErrors:
    for name in ("key", "path"):
        if not text(item, name):
            yield required(f"{path}.{name}")
    where = text(item, "path")
    yield from invalid_each(f"{path}.path", where, file_path(where))
    yield from _check_mode(item, "mode", path)


def _check_downward(source: Object, path: str) -> FieldErrors:
    yield from _check_mode(source, "defaultMode", path)
    # The API server leaves the index of the item out of the path.
    for _, item in sections(source, "items", path):
        yield from _check_downward_file(item, path)


def _check_downward_file(item: Object, path: str) -> FieldErrors:
    where = text(item, "path")
    if not where:
        yield required(f"{path}.path")
    yield from invalid_each(f"{path}.path", where, file_path(where))
    field, resource = section(item, "fieldRef"), section(item, "resourceFieldRef")
    if field is not None:
        yield from check_field_reference(field, f"{path}.fieldRef", IN_FILES)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(path, "resource", detail)
    elif resource is not None:
        yield from check_resource_reference(resource, f"{path}.resourceFieldRef", in_file=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _check_mode(item, "mode", path)


def _check_projected(source: Object, path: str) -> FieldErrors:
    yield from _check_mode(source, "defaultMode", path)
    paths: list[str] = []
    for here, projection in sections(source, "sources", path):
        kinds = [name for name, value in projection.items() if isinstance(value, dict)]
        for name in ("secret", "configMap"):
            named = section(projection, name)
            if named is not None:
                yield from _check_named(named, f"{here}.{name}", paths, path)
        downward = section(projection, "downwardAPI")
        for _, item in sections(downward or {}, "items", here):
            yield from _check_downward_file(item, f"{here}.downwardAPI")
            yield from _check_unique(text(item, "path"), text(item, "path"), paths, path)
        token = section(projection, "serviceAccountToken")
        if token is not None:
            yield from _check_token(token, here, path)
        if len(kinds) > 1:
            yield forbidden(here, "may not specify more than 1 volume type per source")


def _check_named(source: Object, path: str, paths: list[str], volume: str) -> FieldErrors:
    if not text(source, "name"):
        yield required(f"{path}.name")
    for here, item in sections(source, "items", path):
        yield from _check_item(item, here)
        yield from _check_unique(text(item, "path"), text(source, "name"), paths, volume)


def _check_unique(where: str, printed: str, paths: list[str], volume: str) -> FieldErrors:
    if where and where in paths:
        yield invalid(volume, printed, "conflicting duplicate paths")
    paths.append(where)


def _check_token(token: Object, path: str, volume: str) -> FieldErrors:
    lifetime = number(token, "expirationSeconds") or 0
    here = f"{path}.serviceAccountToken.expirationSeconds"
    if lifetime < 600:
        yield invalid(here, lifetime, "may not specify a duration less than 10 minutes")
    if lifetime > 2**32:
        yield invalid(here, lifetime, "may not specify a duration larger than 2^32 seconds")
    where = text(token, "path")
    if not where:
        yield required(f"{volume}.path")
    yield from invalid_each(f"{volume}.path", where, file_path(where))


def _check_nfs(source: Object, path: str) -> FieldErrors:
    if not text(source, "path").startswith("/"):
        yield invalid(f"{path}.path", text(source, "path"), "must be an absolute path")


def _check_csi(source: Object, path: str) -> FieldErrors:
    driver = text(source, "driver")
    if not driver:
        return
    if len(driver) > 63:
        yield too_long(f"{path}.driver", 63)
    yield from invalid_each(f"{path}.driver", driver, dns_subdomain(driver.lower()))


def _check_ephemeral(source: Object, path: str) -> FieldErrors:
    template = section(source, "volumeClaimTemplate")
    if template is None:
        return
    here = f"{path}.volumeClaimTemplate"
    metadata, spec = section(template, "metadata") or {}, section(template, "spec") or {}
    yield from check_annotations(pairs(metadata, "annotations"), f"{here}.metadata.annotations")
    yield from check_labels(pairs(metadata, "labels"), f"{here}.metadata.labels")
    if not spec.get("accessModes"):
        yield required(f"{here}.spec.accessModes", "at least 1 access mode is required")
    resources = section(spec, "resources") or {}
    if (section(resources, "requests") or {}).get("storage") is None:
        yield required(f"{here}.spec.resources[storage]")


_CHECKS: Final[dict[str, Callable[[Object, str], FieldErrors]]] = {
    "emptyDir": _check_empty_dir,
    "hostPath": _check_host_path,
    "secret": _check_keys,
    "configMap": _check_keys,
    "downwardAPI": _check_downward,
    "projected": _check_projected,
    "csi": _check_csi,
    "nfs": _check_nfs,
    "ephemeral": _check_ephemeral,
}
