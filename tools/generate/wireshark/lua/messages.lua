-- Reads a whole message in a state, and keeps what messages say of tables.

-- Return what finds the description of a table that was the last one before a place in the capture.
local function relations_before(relations, place)
  return function(oid)
    local described = relations[oid] or {}
    for i = #described, 1, -1 do
      if described[i].place < place then
        return described[i]
      end
    end
  end
end

-- Return a table's OID, and its name with those of its columns, where a message has described one.
local function described(message, found, place)
  local oid, name = found[message.class .. ".relation_oid"], found[message.class .. ".name"]
  if message.group ~= "description" or not oid or not name then
    return nil
  end
  local schema = found[message.class .. ".namespace"] or ""
  local columns = {}
  local function column(i)
    return found[string.format("%s.columns[%d].name", message.class, i)]
  end
  while column(#columns) do
    columns[#columns + 1] = column(#columns)
  end
  return oid, {place = place, name = (schema == "" and "pg_catalog" or schema) .. "." .. name, columns = columns}
end

local function keep(relations, oid, relation)
  relations[oid] = relations[oid] or {}
  table.insert(relations[oid], relation)
end

local function read_message(cursor, message, given, tree)
  if message.needs and given.proto_version < message.needs then
    cursor:refuse(message.class, "needs proto_version %d", message.needs)
  end
  local option = message.option
  if option and given[option.name] == option.off then
    cursor:refuse(message.class, "comes only with the option %s", option.name)
  end
  read_all(cursor, message.elements, message.class, tree)
  if cursor:left() > 0 then
    cursor:refuse(message.class, "ends here, %d more bytes follow", cursor:left())
  end
end

local function no_relation()
  return nil
end

-- Read a message; return the cursor, with what was found, and the fault or nil.
local function attempt(bytes, message, given, state, relation_of, tree)
  local names = message.group ~= "description" and relation_of or no_relation
  local cursor = cursor_of(bytes, parameters_of(given, state), names)
  local done, fault = pcall(read_message, cursor, message, given, tree)
  if not done and type(fault) ~= "table" then
    error(fault, 0)
  end
  return cursor, not done and fault or nil
end

-- Return the first state in which a message can be read; nil for none.
local function likely_state(bytes, message, given)
  for _, state in ipairs(STATES) do
    local _, fault = nil, true
    if message.states[state.name] then
      _, fault = attempt(bytes, message, given, state, no_relation, nil)
    end
    if not fault then
      return state
    end
  end
end

local function tagged(messages, bytes)
  return bytes:len() > 0 and messages[bytes:range(0, 1):uint()] or nil
end

-- Return whether bytes, which may be of any COPY, are a frame that holds nothing but a message of this plugin.
local function plausible(bytes, given)
  local frame = tagged(FRAMES, bytes)
  if not frame then
    return false
  end
  local cursor, fault = attempt(bytes, frame, given, nil, no_relation, nil)
  if fault or not cursor.payload then
    return not fault
  end
  local message = tagged(MESSAGES, cursor.payload)
  return message ~= nil and likely_state(cursor.payload, message, given) ~= nil
end
