# Settings of a new Redmine, which is run with `rails runner`.
Redmine::DefaultData::Loader.load('en')
admin = User.find_by_login('admin')
admin.password = admin.password_confirmation = 'Secret-123'
admin.must_change_passwd = false
admin.save!
Setting.rest_api_enabled = '1'
