"""The announcement of a shutdown, as systemd-logind makes it, on a D-Bus of its own."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jeepney import (
    DBusAddress,
    HeaderFields,
    Message,
    MessageType,
    message_bus,
    new_error,
    new_method_return,
    new_signal,
)
from jeepney.io.blocking import DBusConnection, Proxy, open_dbus_connection

_MANAGER: Final = DBusAddress(
    "/org/freedesktop/login1", "org.freedesktop.login1", "org.freedesktop.login1.Manager"
)
_DELAY: Final = 5_000_000  # microseconds that a program may delay a shutdown, as by default
_CONFIG: Final = """<busconfig>
  <type>session</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


@dataclass(frozen=True)
class Logind:
    """What programs that want to delay a shutdown talk to."""

    socket: Path
    connection: DBusConnection

    def announce(self, *, shutdown: bool) -> None:
        """Announce that the machine shuts down, or does not after all."""
        self.connection.send(new_signal(_MANAGER, "PrepareForShutdown", "b", (shutdown,)))

    def serve(self) -> None:
        """Answer until the connection is closed."""
        with suppress(OSError, ValueError):
            while True:
                message = self.connection.receive()
                if message.header.message_type is MessageType.method_call:
                    self._answer(message)

    def _answer(self, message: Message) -> None:
        member = message.header.fields[HeaderFields.member]
        if member == "Get" and message.body[1] == "InhibitDelayMaxUSec":
            self._reply(message, "v", ("t", _DELAY))
        elif member == "Inhibit":
            # The lock is held as long as the file that is sent is open.
            lock = os.open(os.devnull, os.O_RDONLY)
            self._reply(message, "h", lock)
            os.close(lock)
        else:
            self.connection.send(new_error(message, "org.freedesktop.DBus.Error.UnknownMethod"))

    def _reply(self, message: Message, signature: str, value: Any) -> None:
        self.connection.send(new_method_return(message, signature, (value,)))


@contextmanager
def logind(folder: Path) -> Iterator[Logind]:
    """Run a D-Bus with logind on it; its socket and its configuration are in the folder."""
    socket, config = folder / "system-bus", folder / "system-bus.conf"
    config.write_text(_CONFIG.format(socket=socket))
    command = ["dbus-daemon", "--nofork", "--print-address", f"--config-file={config}"]
    with (
        (folder / "system-bus.log").open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as bus,
    ):
        try:
            assert bus.stdout is not None
            assert bus.stdout.readline(), "dbus-daemon did not start"
            with open_dbus_connection(f"unix:path={socket}", enable_fds=True) as connection:
                name = Proxy(message_bus, connection).RequestName(_MANAGER.bus_name)
                assert name == (1,), name
                made = Logind(socket, connection)
                serving = threading.Thread(target=made.serve, daemon=True)
                serving.start()
                yield made
                bus.terminate()  # which ends the thread
                serving.join()
        finally:
            bus.kill()
