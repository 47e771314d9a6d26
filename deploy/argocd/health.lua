-- Health of an Advanced DaemonSet (apps.kruise.io) that Everynode serves, from the conditions in its status.
local health = { status = "Progressing", message = "Waiting for the controller" }
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return health
end

local said = {}
for _, condition in ipairs(status.conditions or {}) do
  said[condition.type] = condition
end

local ready, stalled = said["Ready"], said["Stalled"]
if ready == nil then
  -- Another controller serves it, which writes counts and no conditions.
  local updated = status.updatedNumberScheduled == status.desiredNumberScheduled
  if updated and status.numberAvailable == status.desiredNumberScheduled then
    return { status = "Healthy", message = "every node has an available pod of the newest template" }
  end
  return health
end

health.message = ready.message
if stalled ~= nil and stalled.status == "True" then
  health.status = "Degraded"
  health.message = stalled.reason .. ": " .. stalled.message
elseif ready.status == "True" then
  -- A canary that works and waits for a person, a script or the next commit.
  local held = ready.reason == "Held" or ready.reason == "Paused"
  health.status = held and "Suspended" or "Healthy"
end
return health
