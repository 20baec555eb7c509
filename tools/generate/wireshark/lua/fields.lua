-- The fields that Wireshark knows: one for each place in a frame or message, with its name in filters.

-- Each list, by what its rows are looked up by, too.
local function index(rows, key)
  for _, row in ipairs(rows) do
    rows[row[key]] = row
  end
end

index(FRAMES, "tag")
index(MESSAGES, "tag")
index(PARTS, "name")
index(STATES, "name")

for _, message in ipairs(MESSAGES) do
  for _, state in ipairs(message.states) do
    message.states[state] = true
  end
end

local TYPES = {
  char = {ProtoField.char, base.HEX, function(range) return range:uint() end},
  uint8 = {ProtoField.uint8, base.DEC, function(range) return range:uint() end},
  uint16 = {ProtoField.uint16, base.DEC, function(range) return range:uint() end},
  uint32 = {ProtoField.uint32, base.DEC, function(range) return range:uint() end},
  uint64 = {ProtoField.uint64, base.DEC, function(range) return range:uint64() end},
  int8 = {ProtoField.int8, base.DEC, function(range) return range:int() end},
  int16 = {ProtoField.int16, base.DEC, function(range) return range:int() end},
  int32 = {ProtoField.int32, base.DEC, function(range) return range:int() end},
  int64 = {ProtoField.int64, base.DEC, function(range) return range:int64() end},
  lsn = {ProtoField.uint64, base.HEX, function(range) return range:uint64() end},
}

local fields = {}

local function register(field)
  fields[#fields + 1] = field
  return field
end

local function node_field(described)
  return register(ProtoField.none(described.abbr, described.name, described.about))
end

local DEFINE = {}

local function define_all(elements)
  for _, element in ipairs(elements) do
    DEFINE[element.kind](element)
  end
end

function DEFINE.number(element)
  local create, shown = table.unpack(TYPES[element.type])
  local named = element.size < 8 and element.values or nil
  element.field = register(create(element.abbr, element.name, shown, named, nil, element.about))
end

function DEFINE.time(element)
  element.field = register(ProtoField.absolute_time(element.abbr, element.name, base.UTC, element.about))
end

function DEFINE.double(element)
  element.field = register(ProtoField.double(element.abbr, element.name, element.about))
end

function DEFINE.string(element)
  element.field = register(ProtoField.stringz(element.abbr, element.name, base.UNICODE, element.about))
end

function DEFINE.bytes(element)
  element.field = register(ProtoField.bytes(element.abbr, element.name, base.NONE, element.about))
end

DEFINE.part = function(element) element.field = node_field(element) end

DEFINE["repeat"] = function(element)
  element.field = node_field(element)
  define_all(element.item.elements)
end

function DEFINE.choice(element)
  local named = {}
  index(element.alternatives, "tag")
  for _, alternative in ipairs(element.alternatives) do
    named[alternative.tag] = alternative.name
    define_all(alternative.content and alternative.content.elements or {})
  end
  element.field = node_field(element)
  local create, shown = table.unpack(TYPES[element.tag_type])
  element.tag = register(create(element.tag_abbr, element.tag_name, shown, named, nil, element.about))
end

for _, described in ipairs({FRAMES, MESSAGES, PARTS}) do
  for _, structure in ipairs(described) do
    define_all(structure.elements)
  end
end
