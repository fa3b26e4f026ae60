# What ruby-jwt and Rack make of values of Authorization.
require 'json'
require 'jwt'

asked = JSON.parse($stdin.read)
secret = asked['secret']
readers = {
  'ruby-jwt' => lambda { |value|
    JWT.decode(value.split(' ')[1], secret, true, algorithm: 'HS256')[0]['sub']
  },
  'ruby-jwt last word' => lambda { |value|
    JWT.decode(value.split(' ').last, secret, true, algorithm: 'HS256')[0]['sub']
  },
  # ActionController::HttpAuthentication::Token.
  'rails token' => lambda { |value|
    rest = value[/\A(?:Token|Bearer)\s+(.*)/m, 1]
    pieces = rest.split(/(?:,|;|\t)\s*/).reject(&:empty?)
    token = pieces[0].sub(/\Atoken=/, '').delete_prefix('"').delete_suffix('"')
    asked['tokens'].include?(token) ? token : nil
  },
  # Rack::Auth::Basic::Request#credentials.
  'rack basic' => lambda { |value|
    scheme, params = value.split(' ', 2)
    text = params.unpack1('m').force_encoding('UTF-8')
    scheme.downcase == 'basic' && text.valid_encoding? && text.include?(':') ? text : nil
  },
}
answers = readers.transform_values do |reader|
  asked['values'].map do |value|
    reader.call(value)
  rescue StandardError
    nil
  end
end
puts JSON.generate(answers)
