-- Actions on an Advanced DaemonSet: stop its update where it is, and let it go on.
local strategy = obj.spec.updateStrategy or {}
local rolling = strategy.rollingUpdate or {}
local paused = rolling.paused == true
local on_delete = strategy.type == "OnDelete"
return {
  pause = { disabled = paused or on_delete, iconClass = "fa fa-fw fa-pause-circle" },
  resume = { disabled = not paused, iconClass = "fa fa-fw fa-play-circle" },
}
