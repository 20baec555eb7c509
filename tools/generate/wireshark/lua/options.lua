-- The options of a client: what it asks for in START_REPLICATION, else what the preferences say.

local proto = Proto("pgoutput", "PostgreSQL Logical Replication")

local function preference(option)
  if option.type == "number" then
    return Pref.uint(option.name, option.newest, option.about or "")
  elseif option.type == "switch" then
    return Pref.bool(option.name, true, option.about or "")
  end
  local choices = {}
  for i, value in ipairs(option.values) do
    choices[i] = {i, value.name, i}
  end
  return Pref.enum(option.name, #choices, option.about or "", choices, false)
end

for _, option in ipairs(OPTIONS) do
  proto.prefs[option.name] = preference(option)
end
proto.prefs.descriptions = Pref.bool("descriptions", false, "Whether each field is shown with what it means.")
proto.prefs.note = Pref.statictext("They hold where the capture does not contain the command START_REPLICATION.", "")

local function preferred()
  local given = {}
  for _, option in ipairs(OPTIONS) do
    local value = proto.prefs[option.name]
    given[option.name] = option.values and option.values[value].name or value
  end
  return given
end

-- PostgreSQL's words for boolean values; before 16, the option streaming was one.
local TRUE, FALSE = {"true", "on", "yes", "1", "t", "y"}, {"false", "off", "no", "0", "f", "n"}
local SWITCH = {}
for i = 1, #TRUE do
  SWITCH[TRUE[i]], SWITCH[FALSE[i]] = "on", "off"
end

-- Return the value of an option; nil for what PostgreSQL refuses.
local function value_of(option, text)
  if option.type == "number" then
    return tonumber(text)
  elseif option.type == "switch" then
    return SWITCH[text:lower()] == "on"
  end
  local words = {}
  for _, value in ipairs(option.values) do
    words[value.name] = value.name
  end
  return words[text:lower()] or words[SWITCH[text:lower()]]
end

-- Return the value in quotes that begins at a place, in which doubled quotes stand for one, and where it ends.
local function quoted(text, at)
  local close = at
  repeat
    close = text:find("'", close + 1, true) or #text + 1
    local doubled = text:sub(close + 1, close + 1) == "'"
    close = doubled and close + 1 or close
  until not doubled
  return text:sub(at + 1, close - 1), close + 1
end

-- Return the options of a START_REPLICATION as they are written: a name, and a value in quotes or none.
local function written_options(query)
  local written, at = {}, (query:find("(", 1, true) or #query) + 1
  while true do
    local _, stop, name = query:find('^[%s,]*"?([%w_]+)"?%s*', at)
    if not name then
      return written
    end
    local value = "true"
    at = stop + 1
    if query:sub(at, at) == "'" then
      value, at = quoted(query, at)
    end
    written[name:lower()] = value
  end
end

-- Return the options of a START_REPLICATION, and whether it is this plugin's: others have no proto_version.
local function asked(query)
  local written, given = written_options(query), {}
  for _, option in ipairs(OPTIONS) do
    local value = written[option.name] and value_of(option, written[option.name])
    if value == nil then
      value = option.default or false
    end
    given[option.name] = value
  end
  return given, written.proto_version ~= nil
end

local function set_of(option, value)
  if option.type == "switch" then
    return value and option.sets or {}
  end
  for _, each in ipairs(option.values or {}) do
    if each.name == value then
      return each.sets or {}
    end
  end
  return {}
end

-- Return the parameters of the layouts.
local function parameters_of(given, state)
  local parameters = {proto_version = given.proto_version}
  for _, option in ipairs(OPTIONS) do
    for _, name in ipairs(set_of(option, given[option.name])) do
      parameters[name] = true
    end
  end
  for _, name in ipairs(state and state.sets or {}) do
    parameters[name] = true
  end
  return parameters
end

local function options_in_words(given)
  local words = {}
  for i, option in ipairs(OPTIONS) do
    words[i] = string.format("%s %s", option.name, tostring(given[option.name]))
  end
  return table.concat(words, ", ")
end
