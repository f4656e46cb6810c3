-- Health of a RedisBenchmark for Argo CD. Its place is resource.customizations.health.redisbench.dev_RedisBenchmark
-- in the ConfigMap argocd-cm.
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The operator has not looked at this generation yet"}
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local function is(kind, wanted)
  return conditions[kind] ~= nil and conditions[kind].status == wanted
end
local function because(health, kind)
  return {status = health, message = conditions[kind].message}
end

if is("Finished", "True") then
  if is("Failed", "True") then
    return because("Degraded", "Failed")
  end
  -- Measured, but not what it should be.
  for _, kind in ipairs({"Complete", "ThresholdsMet", "Verified", "Valid"}) do
    if is(kind, "False") then
      return because("Degraded", kind)
    end
  end
  return because("Healthy", "Finished")
end
for _, kind in ipairs({"Stalled", "Accepted"}) do
  if is(kind, kind == "Stalled" and "True" or "False") then
    return because("Degraded", kind)
  end
end
if status.phase == "Suspended" then
  return {status = "Suspended", message = "Held back by spec.suspend"}
end
return {status = "Progressing", message = "The benchmark is " .. (status.phase or "Pending")}
